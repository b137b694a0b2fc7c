// Copying: random words, some of them invented, and then the same words again.
//
//   Read aloud: stone kivo velvet pamdor. Again: stone kivo velvet pamdor.
//
// The answer is one of the repeated words, not the first; what is wrong are the others. Held out:
// sequences.
#include <algorithm>

#include "filigree/data.h"
#include "filigree/names.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

// The words twice: as a whole in {words}, then up to the answer in {again}, and {rest} behind it.
struct Form {
  std::string_view separator;
  std::string_view pattern;
};

constexpr Form kForms[] = {
    {" ", "{words} {again}[{answer}]{rest}"},
    {" ", "{words}. {again}[{answer}]{rest}."},
    {" ", "Read aloud: {words}. Again: {again}[{answer}]{rest}."},
    {" ", "{name} said \"{words}\" and {other} repeated \"{again}[{answer}]{rest}\"."},
    {" ", "Copy this line.\n{words}\n{again}[{answer}]{rest}"},
    {", ", "First list: {words}. Second list: {again}[{answer}]{rest}."},
    {", ", "{name} bought {words}. {other} bought the same: {again}[{answer}]{rest}."},
    {"-", "The password is {words}. Please enter the password: {again}[{answer}]{rest}"},
    {" ", "The spell was \"{words}\". So {name} called out \"{again}[{answer}]{rest}\"."},
    {" ", "The parrot heard \"{words}\" and cried \"{again}[{answer}]{rest}\"."},
    {", ", "The order of the cards was {words}; it was again {again}[{answer}]{rest}."},
    {" ", "Echo: {words} ... {again}[{answer}]{rest} ..."},
    {" ", "> {words}\n< {again}[{answer}]{rest}"},
    {", ", "Remember these words: {words}. They were {again}[{answer}]{rest}."},
    {" / ", "{words} // {again}[{answer}]{rest}"},
    {" ",
     "The message \"{words}\" was sent. The message \"{again}[{answer}]{rest}\" was received."},
};

// Two or three open or closed syllables.
std::string invented_word(Random& random) {
  constexpr std::string_view kOnsets[] = {"b", "d", "f", "g", "k",  "l",  "m",  "n",  "p",  "r",
                                          "s", "t", "v", "z", "bl", "dr", "gr", "pl", "st", "tr"};
  constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u"};
  constexpr std::string_view kCodas[] = {"", "", "", "l", "m", "n", "r", "s", "x"};
  std::string word;
  for (int i = pick_number(random, 2, 3); i > 0; --i) {
    word += pick(random, kOnsets);
    word += pick(random, kVowels);
    word += pick(random, kCodas);
  }
  return word;
}

std::vector<std::string> random_words(Random& random) {
  const auto count = static_cast<std::size_t>(pick_number(random, 3, 9));
  // All plain, all invented, or a mixture.
  const std::uint64_t invented_of_two = random.below(3);
  std::vector<std::string> words;
  while (words.size() < count) {
    const std::string word = random.below(2) < invented_of_two
                                 ? invented_word(random)
                                 : std::string(pick(random, plain_words()));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

// The sentence with one list of words the first time and another one the second, with the right and
// the wrong answers of the second.
TaskExample repeated(const Form& form, const std::vector<std::string>& first,
                     const std::vector<std::string>& words, std::size_t place,
                     const std::vector<std::string>& people) {
  // A space before the answer belongs to it, as in running text; other separators do not.
  const std::string separator(form.separator);
  const bool space = separator.ends_with(' ');
  const std::string before = space ? separator.substr(0, separator.size() - 1) : separator;
  const std::string lead = space ? " " : "";
  const std::string again = join(std::span(words).first(place), separator);
  std::string rest;
  for (std::size_t i = place + 1; i < words.size(); ++i) rest += separator + words[i];
  const Slots slots = {{"words", join(first, separator)},
                       {"again", again + before},
                       {"answer", lead + words[place]},
                       {"rest", rest},
                       {"name", people[0]},
                       {"other", people[1]}};
  TaskExample example = compose(form.pattern, slots);
  // The word before the answer and the answer, the first time.
  std::size_t begin = roles_in(form.pattern, slots, {{"words", ""}})[0].begin;
  for (std::size_t i = 0; i <= place; ++i) {
    if (i + 1 >= place)
      example.roles.push_back({i == place ? "B1" : "A1", begin, begin + first[i].size()});
    begin += first[i].size() + separator.size();
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    if (i != place) example.wrong.push_back(lead + words[i]);
  return example;
}

}  // namespace

TaskExample draw_copy(Random& random) {
  const std::vector<std::string> words = random_words(random);
  const Form& form = pick(random, kForms);
  const auto place =
      static_cast<std::size_t>(pick_number(random, 1, static_cast<int>(words.size()) - 1));
  TaskExample example = repeated(form, words, words, place, pick_several(random, names(), 2));
  example.combination = join(words, " ");
  return example;
}

TaskPair pair_copy(Random& random, CopyChange change) {
  const std::vector<std::string> words = random_words(random);
  const Form& form = pick(random, kForms);
  const auto place =
      static_cast<std::size_t>(pick_number(random, 1, static_cast<int>(words.size()) - 1));
  const std::vector<std::string> people = pick_several(random, names(), 2);
  const auto told = [&](const std::vector<std::string>& first_time) {
    return repeated(form, first_time, words, place, people);
  };
  std::vector<std::string> first_time = words;
  const auto replace = [&](std::size_t i) {
    std::vector<std::string> taken = words;
    taken.insert(taken.end(), first_time.begin(), first_time.end());
    first_time[i] = pick_other(random, plain_words(), taken);
  };
  TaskPair pair;
  pair.clean = told(words);
  pair.clean.combination = join(words, " ");
  if (change == CopyChange::kOneWord) {
    replace(place);
    pair.clean.wrong = {(pair.clean.answer.starts_with(' ') ? " " : "") + first_time[place]};
  } else {
    for (std::size_t i = 0; i < words.size(); ++i) replace(i);
  }
  pair.corrupt = told(first_time).prompt;
  return pair;
}

}  // namespace filigree::corpus

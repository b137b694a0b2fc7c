// Every task: its answers are right, recomputed from the text alone, and its splits do not overlap.
#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::vector<TaskExample> examples(std::string_view task, DataSplit split, int count,
                                  std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<TaskExample> all;
  for (int i = 0; i < count; ++i) all.push_back(make_example(corpus_task(task), random, split));
  return all;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex);
       it != std::sregex_iterator(); ++it)
    all.push_back(it->size() > 1 ? (*it)[1].str() : it->str());
  return all;
}

std::vector<std::string> words_of(const std::string& text) { return matches(text, "[A-Za-z']+"); }

std::string trimmed(const std::string& text) {
  return text.starts_with(' ') ? text.substr(1) : text;
}

bool is_in(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

class EveryTask : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryTask, GivesWholeExamples) {
  for (const TaskExample& example : examples(GetParam(), DataSplit::kTrain, 1000)) {
    EXPECT_FALSE(example.prompt.empty());
    EXPECT_FALSE(trimmed(example.answer).empty());
    EXPECT_TRUE(example.text.starts_with(example.prompt + example.answer)) << example.text;
    EXPECT_FALSE(example.combination.empty());
    EXPECT_FALSE(example.wrong.empty());
    EXPECT_THAT(example.wrong, Not(Contains(example.answer))) << example.text;
    for (const std::string& right : example.also_right)
      EXPECT_THAT(example.wrong, Not(Contains(right)));
    // The space before a word belongs to the word; more of them are indentation.
    EXPECT_TRUE(!example.prompt.ends_with(' ') || example.answer.starts_with(' ')) << example.text;
    EXPECT_EQ(example.text.find("<|"), std::string::npos);
    EXPECT_EQ(matches(example.text, "\\{[a-z]{2,}\\}"), std::vector<std::string>{}) << example.text;
  }
}

TEST_P(EveryTask, HoldsOutCombinations) {
  std::set<std::string> combinations;
  std::set<std::string> texts;
  std::set<std::string> questions;
  for (const TaskExample& example : examples(GetParam(), DataSplit::kTrain, 6000)) {
    combinations.insert(example.combination);
    texts.insert(example.text);
    questions.insert(example.prompt);
  }
  std::set<std::string> held_out;
  for (const TaskExample& example : examples(GetParam(), DataSplit::kHeldOut, 500)) {
    EXPECT_FALSE(combinations.contains(example.combination)) << example.combination;
    EXPECT_FALSE(texts.contains(example.text)) << example.text;
    held_out.insert(example.combination);
  }
  EXPECT_GT(held_out.size(), 30u);
  EXPECT_GT(combinations.size(), 500u);
  // The texts are many, not a few by heart.
  EXPECT_GT(texts.size(), 2000u);
}

TEST_P(EveryTask, HoldsOutOneInSixteen) {
  Random random(3);
  std::map<std::string, bool> combinations;
  for (int i = 0; i < 8000; ++i) {
    const TaskExample example = corpus_task(GetParam()).draw(random);
    combinations[example.combination] = is_held_out(GetParam(), example.combination);
  }
  const auto held_out = std::count_if(combinations.begin(), combinations.end(),
                                      [](const auto& item) { return item.second; });
  const double share = static_cast<double>(held_out) / static_cast<double>(combinations.size());
  EXPECT_GT(share, 0.03);
  EXPECT_LT(share, 0.10);
}

TEST_P(EveryTask, IsAFunctionOfTheSeed) {
  const auto texts = [&](std::uint64_t seed) {
    std::vector<std::string> all;
    for (const TaskExample& example : examples(GetParam(), DataSplit::kTrain, 20, seed))
      all.push_back(example.text);
    return all;
  };
  EXPECT_EQ(texts(4), texts(4));
  EXPECT_NE(texts(4), texts(5));
}

std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names;
  for (const CorpusTask& task : corpus_tasks()) names.push_back(task.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, testing::ValuesIn(task_names()),
                         [](const auto& task) { return std::string(task.param); });

TEST(CorpusTasks, AreAllThere) {
  EXPECT_EQ(corpus_tasks().size(), 11u);
  std::set<std::string_view> names;
  for (const CorpusTask& task : corpus_tasks()) {
    EXPECT_TRUE(names.insert(task.name).second);
    EXPECT_FALSE(task.description.empty());
  }
  EXPECT_ERROR(corpus_task("additoin"), "there is no task 'additoin'; nearest: addition");
}

// Examples of both splits.
std::vector<TaskExample> many(std::string_view task) {
  std::vector<TaskExample> all = examples(task, DataSplit::kTrain, 4000);
  const std::vector<TaskExample> held_out = examples(task, DataSplit::kHeldOut, 500);
  all.insert(all.end(), held_out.begin(), held_out.end());
  return all;
}

TEST(IndirectObjectTask, TheOtherPersonReceives) {
  int abba = 0;
  for (const TaskExample& example : many("indirect_object")) {
    std::vector<std::string> people;
    for (const std::string& word : words_of(example.prompt))
      if (is_in(corpus::names(), word)) people.push_back(word);
    ASSERT_EQ(people.size(), 3u) << example.text;
    ASSERT_NE(people[0], people[1]);
    // The one named twice acts.
    const std::string receiver = people[2] == people[0] ? people[1] : people[0];
    EXPECT_EQ(example.answer, " " + receiver) << example.text;
    EXPECT_EQ(example.wrong, std::vector<std::string>{" " + people[2]});
    abba += people[2] == people[1] ? 1 : 0;
  }
  EXPECT_GT(abba, 2000);
  EXPECT_LT(abba, 2500);
}

TEST(GreaterThanTask, TheEndIsLaterInTheSameCentury) {
  for (const TaskExample& example : many("greater_than")) {
    const std::vector<std::string> years = matches(example.text, "[0-9]+");
    ASSERT_EQ(years.size(), 2u) << example.text;
    ASSERT_EQ(years[0].size(), 4u);
    ASSERT_EQ(years[1].size(), 4u);
    EXPECT_EQ(years[0].substr(0, 2), years[1].substr(0, 2));
    EXPECT_LT(years[0], years[1]);
    EXPECT_EQ(example.answer, years[1].substr(2));
    EXPECT_TRUE(example.prompt.ends_with(years[0].substr(0, 2)));
    EXPECT_EQ(example.wrong.size() + example.also_right.size() + 1, 100u);
    for (const std::string& wrong : example.wrong) EXPECT_LE(wrong, years[0].substr(2));
    for (const std::string& right : example.also_right) EXPECT_GT(right, years[0].substr(2));
  }
}

TEST(PronounTask, ThePronounHasTheGenderOfTheName) {
  const std::set<std::string> male = {"he", "his", "him", "himself"};
  const std::set<std::string> female = {"she", "her", "herself"};
  std::set<std::string> seen;
  for (const TaskExample& example : many("pronoun")) {
    std::vector<std::string> people;
    for (const std::string& word : words_of(example.prompt))
      if (is_in(corpus::names(), word)) people.push_back(word);
    ASSERT_EQ(people.size(), 1u) << example.text;
    const bool is_male = is_in(corpus::male_names(), people[0]);
    EXPECT_THAT(is_male ? male : female, Contains(trimmed(example.answer))) << example.text;
    EXPECT_THAT(is_male ? female : male, Contains(trimmed(example.wrong[0]))) << example.text;
    seen.insert(trimmed(example.answer));
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST(AntonymTask, OppositesAreMutual) {
  std::map<std::string, std::string> opposite;
  for (const TaskExample& example : many("antonym")) {
    std::string word = matches(example.prompt, "\"([A-Za-z]+)\"").at(0);
    word[0] = static_cast<char>(std::tolower(word[0]));
    EXPECT_TRUE(example.prompt.ends_with("\"")) << example.prompt;
    const auto [known, added] = opposite.emplace(word, example.answer);
    EXPECT_EQ(known->second, example.answer);
    EXPECT_EQ(example.wrong[0], word);
  }
  EXPECT_GT(opposite.size(), 160u);  // both words of more than 80 pairs
  for (const auto& [word, answer] : opposite) EXPECT_EQ(opposite[answer], word) << word;
  EXPECT_EQ(opposite["large"], "small");
  EXPECT_EQ(opposite["cold"], "hot");
  EXPECT_EQ(opposite["enemy"], "friend");
}

TEST(CapitalTask, CapitalsAreRight) {
  std::map<std::string, std::set<std::string>> capitals;
  for (const TaskExample& example : many("capital"))
    capitals[example.combination.substr(0, example.combination.find(':'))].insert(
        trimmed(example.answer));
  EXPECT_GE(capitals.size(), 80u);
  std::set<std::string> cities;
  for (const auto& [country, answers] : capitals) {
    EXPECT_EQ(answers.size(), 1u) << country;
    EXPECT_TRUE(cities.insert(*answers.begin()).second) << *answers.begin();
  }
  // Those that are most often mistaken for a larger city, and a few others.
  const std::map<std::string, std::string> known = {{"Australia", "Canberra"},
                                                    {"Canada", "Ottawa"},
                                                    {"Brazil", "Brasilia"},
                                                    {"Turkey", "Ankara"},
                                                    {"Switzerland", "Bern"},
                                                    {"New Zealand", "Wellington"},
                                                    {"Morocco", "Rabat"},
                                                    {"Nigeria", "Abuja"},
                                                    {"Vietnam", "Hanoi"},
                                                    {"Pakistan", "Islamabad"},
                                                    {"Kazakhstan", "Astana"},
                                                    {"the United States", "Washington"},
                                                    {"China", "Beijing"},
                                                    {"India", "New Delhi"},
                                                    {"the Netherlands", "Amsterdam"},
                                                    {"France", "Paris"},
                                                    {"Japan", "Tokyo"},
                                                    {"Ecuador", "Quito"},
                                                    {"Cameroon", "Yaounde"},
                                                    {"the United Arab Emirates", "Abu Dhabi"}};
  for (const auto& [country, city] : known)
    EXPECT_EQ(capitals[country], std::set<std::string>{city}) << country;
}

TEST(CopyTask, TheAnswerFollowsTheSameWordAsBefore) {
  for (const TaskExample& example : many("copy")) {
    const std::vector<std::string> words = words_of(example.combination);
    const std::string answer = trimmed(example.answer);
    const std::string previous = words_of(example.prompt).back();
    const auto at = std::find(words.begin(), words.end(), previous);
    ASSERT_NE(at, words.end()) << example.text;
    ASSERT_NE(at + 1, words.end()) << example.text;
    EXPECT_EQ(*(at + 1), answer) << example.text;
    // Once before the answer, once as the answer, in one text.
    const std::vector<std::string> all = words_of(example.text);
    for (const std::string& word : words)
      EXPECT_GE(std::count(all.begin(), all.end(), word), 2) << example.text;
    EXPECT_EQ(example.wrong.size() + 1, words.size());
  }
}

TEST(DocstringTask, TheNextArgumentFollows) {
  for (const TaskExample& example : many("docstring")) {
    std::vector<std::string> arguments =
        matches(matches(example.prompt, "\\(([^)]*)\\)").at(0), "[a-z]+");
    if (arguments[0] == "self") arguments.erase(arguments.begin());
    const std::string documentation = example.prompt.substr(example.prompt.find(')'));
    // Notes hold none of the arguments' names or these are told apart by what comes before.
    const std::string last_line = example.prompt.substr(example.prompt.rfind('\n') + 1);
    std::size_t documented = 0;
    for (std::size_t at = documentation.find("\n" + last_line + " ");
         at != std::string::npos && at + last_line.size() + 1 < documentation.size();
         at = documentation.find("\n" + last_line + " ", at + 1))
      ++documented;
    ASSERT_LT(documented, arguments.size()) << example.text;
    EXPECT_EQ(example.answer, " " + arguments[documented]) << example.text;
    EXPECT_EQ(example.wrong.size() + 1, arguments.size());
  }
}

TEST(AdditionTask, SumsAreRight) {
  for (const TaskExample& example : many("addition")) {
    const std::vector<std::string> numbers = matches(example.prompt, "[0-9]+");
    ASSERT_EQ(numbers.size(), 2u) << example.text;
    const int sum = std::stoi(numbers[0]) + std::stoi(numbers[1]);
    EXPECT_EQ(trimmed(example.answer), std::to_string(sum)) << example.text;
    EXPECT_EQ(numbers[0].size(), 2u);
    EXPECT_EQ(numbers[1].size(), 2u);
    EXPECT_EQ(is_held_out("addition", example.combination),
              is_held_out("addition", std::min(numbers[0], numbers[1]) + " " +
                                          std::max(numbers[0], numbers[1])));
  }
}

TEST(AgreementTask, TheVerbHasTheNumberOfTheSubject) {
  const std::set<std::string> irregular_plurals = {"children", "women", "men"};
  const std::set<std::string> singular_verbs = {"isn't", "wasn't", "hasn't", "doesn't"};
  int distracted = 0;
  for (const TaskExample& example : many("agreement")) {
    const std::string subject = matches(example.prompt, "[Tt]he ([a-z]+)").at(0);
    const auto is_plural_noun = [&](const std::string& noun) {
      return noun.ends_with('s') || irregular_plurals.contains(noun);
    };
    const auto is_singular_verb = [&](const std::string& verb) {
      return verb.ends_with('s') || singular_verbs.contains(verb);
    };
    EXPECT_EQ(is_singular_verb(trimmed(example.answer)), !is_plural_noun(subject)) << example.text;
    EXPECT_EQ(is_singular_verb(trimmed(example.wrong[0])), is_plural_noun(subject)) << example.text;
    const std::string other = example.combination.substr(example.combination.find("/ ") + 2);
    distracted += is_plural_noun(subject) != is_plural_noun(other) ? 1 : 0;
  }
  EXPECT_GT(distracted, 1800);
}

// The phrase of the list that ends last in `text`, the longest of those.
std::string last_mention(const std::string& text, std::span<const std::string_view> list) {
  std::string found;
  std::size_t found_end = 0;
  for (const std::string_view phrase : list)
    for (std::size_t at = text.find(phrase); at != std::string::npos;
         at = text.find(phrase, at + 1)) {
      const std::size_t end = at + phrase.size();
      const bool whole = (at == 0 || std::isalpha(text[at - 1]) == 0) &&
                         (end == text.size() || std::isalpha(text[end]) == 0);
      if (whole && (end > found_end || (end == found_end && phrase.size() > found.size()))) {
        found = phrase;
        found_end = end;
      }
    }
  return found;
}

TEST(EntityTask, TheAnswerIsWhereItWentLast) {
  int moved = 0;
  for (const TaskExample& example : many("entity")) {
    const std::string who = example.combination.substr(0, example.combination.find(" @"));
    const bool person = is_in(corpus::names(), who);
    // Sentences of the story; the last one or two are the question.
    std::string where;
    std::set<std::string> mentioned;
    for (const std::string& sentence : matches(example.prompt, "[^.?]+[.]")) {
      const std::string place =
          last_mention(sentence, person ? corpus::places() : corpus::containers());
      mentioned.insert(place);
      const std::vector<std::string> words = words_of(sentence);
      if (std::find(words.begin(), words.end(), who) == words.end()) continue;
      moved += !where.empty() ? 1 : 0;
      where = place;
    }
    EXPECT_EQ(example.answer, " " + where) << example.text;
    for (const std::string& wrong : example.wrong)
      EXPECT_THAT(mentioned, Contains(trimmed(wrong))) << example.text;
  }
  EXPECT_GT(moved, 1000);
}

TEST(BracketsTask, TheAnswerClosesTheInnermost) {
  const std::map<char, char> closing = {{'(', ')'}, {'[', ']'}, {'{', '}'}};
  std::set<std::size_t> depths;
  for (const TaskExample& example : many("brackets")) {
    std::string open;
    for (std::size_t i = 0; i < example.text.size(); ++i) {
      if (i == example.prompt.size()) {
        ASSERT_FALSE(open.empty()) << example.text;
        EXPECT_EQ(trimmed(example.answer), std::string(1, closing.at(open.back()))) << example.text;
        depths.insert(open.size());
      }
      const char c = example.text[i];
      if (closing.contains(c)) {
        open += c;
      } else if (c == ')' || c == ']' || c == '}') {
        ASSERT_FALSE(open.empty()) << example.text;
        EXPECT_EQ(c, closing.at(open.back()));
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty()) << example.text;
    EXPECT_EQ(example.wrong.size(), 2u);
  }
  EXPECT_EQ(depths.size(), 5u);
}

}  // namespace
}  // namespace filigree

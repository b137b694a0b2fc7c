#include "analyze/task/induction.h"

#include <algorithm>
#include <memory>
#include <string>

#include "filigree/error.h"
#include "text/corpus/compose.h"

namespace filigree {
namespace {

constexpr std::size_t kLeastWords = 100;
constexpr int kShortest = 5, kLongest = 12;  // tokens before they repeat

bool is_word(std::string_view token) {
  return token.size() >= 3 && token[0] == ' ' &&
         std::all_of(token.begin() + 1, token.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string joined(const std::vector<std::string>& words, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += words[i];
  return text;
}

}  // namespace

DrawPair induction_draw(const Tokenizer& tokenizer, corpus::CopyChange change) {
  // The views are into the tokenizer, of which the result keeps a copy (they share their state).
  const auto words = std::make_shared<std::vector<std::string_view>>();
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (tokenizer.has_token(token) && is_word(tokenizer.token_bytes(token)))
      words->push_back(tokenizer.token_bytes(token));
  }
  require(words->size() >= kLeastWords,
          "task induction: the tokenizer has {} words of one token, fewer than {}", words->size(),
          kLeastWords);
  return [words, change, tokenizer](Random& random) {
    const auto count = static_cast<std::size_t>(corpus::pick_number(random, kShortest, kLongest));
    // Twice as many as needed: the second half are the replacements.
    const std::vector<std::string> all = corpus::pick_several(random, *words, 2 * count);
    const std::vector<std::string> first(all.begin(),
                                         all.begin() + static_cast<std::ptrdiff_t>(count));
    const auto place = static_cast<std::size_t>(random.below(count - 1)) + 1;
    std::vector<std::string> changed = first;
    TaskPair pair;
    if (change == corpus::CopyChange::kOneWord) {
      changed[place] = all[count];
      pair.clean.wrong = {changed[place]};
    } else {
      std::copy(all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), changed.begin());
      for (std::size_t i = 0; i < count; ++i)
        if (i != place) pair.clean.wrong.push_back(first[i]);
    }
    pair.clean.prompt = joined(first, count) + joined(first, place);
    pair.clean.answer = first[place];
    pair.clean.text = joined(first, count) + joined(first, count);
    pair.clean.combination = joined(first, count);
    const std::size_t before = joined(first, place - 1).size(),
                      answer = joined(first, place).size();
    pair.clean.roles = {{"A1", before, answer}, {"B1", answer, answer + first[place].size()}};
    pair.corrupt = joined(changed, count) + joined(first, place);
    return pair;
  };
}

}  // namespace filigree

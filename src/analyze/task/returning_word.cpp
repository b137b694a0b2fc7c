// A name or rare word that returns. In the corrupt passage another name or rare word of the text,
// of equally many tokens, stands where it stood first: one that the text somewhere has after the
// word that the answer follows, if there is one, so that grammar alone does not give it away.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "analyze/task/text_passages.h"
#include "analyze/task/text_tasks.h"

namespace filigree {
namespace {

constexpr std::size_t kLeastNameLetters = 3, kLeastRareLetters = 5;
constexpr std::size_t kLeastApart = 5, kMostApart = 50;  // words
// A rare word is at most one in so many, or occurs at most so often.
constexpr std::size_t kRareOneIn = 10000, kRareTimes = 4;
constexpr int kReplacementsTried = 20;

// In a short text these too are rare, and what returns is only grammar.
constexpr std::string_view kOftenSaid[] = {
    "about",     "above",      "across",   "after",      "again",  "against",   "almost",
    "along",     "already",    "also",     "although",   "always", "among",     "another",
    "around",    "because",    "before",   "behind",     "being",  "below",     "between",
    "beyond",    "both",       "cannot",   "could",      "doing",  "during",    "either",
    "enough",    "every",      "first",    "going",      "great",  "having",    "however",
    "indeed",    "later",      "little",   "might",      "more",   "never",     "nothing",
    "often",     "other",      "others",   "perhaps",    "quite",  "rather",    "really",
    "right",     "second",     "seemed",   "several",    "shall",  "should",    "since",
    "something", "still",      "their",    "themselves", "there",  "therefore", "these",
    "thing",     "things",     "think",    "third",      "those",  "though",    "thought",
    "three",     "through",    "today",    "together",   "toward", "towards",   "under",
    "until",     "usually",    "where",    "whether",    "which",  "while",     "whole",
    "whose",     "within",     "without",  "would",      "years",  "himself",   "herself",
    "itself",    "everything", "anything", "someone",    "anyone"};

enum class WordKind { kCommon, kName, kRare };

// Which words of a text are names or rare.
class WordKinds {
 public:
  explicit WordKinds(const TaskText& text) : counts_(count_words(text)) {
    for (const TextDocument& document : text.documents)
      for (std::size_t i = 0; i < document.words.size(); ++i)
        if (!document.words[i].begins_sentence) within_.insert(document.word(i));
    most_ = std::max<std::size_t>(kRareTimes, text.word_count() / kRareOneIn);
  }

  WordKind kind(std::string_view word) const {
    if (word.size() < kLeastNameLetters || word.find_first_of("'-") != std::string_view::npos)
      return WordKind::kCommon;
    const std::string small = in_small_letters(word);
    if (small == word) {
      const bool rare =
          word.size() >= kLeastRareLetters && counts_.at(word) <= most_ &&
          std::find(std::begin(kOftenSaid), std::end(kOftenSaid), word) == std::end(kOftenSaid);
      return rare ? WordKind::kRare : WordKind::kCommon;
    }
    // Of a name the first letter alone is large, it stands within sentences, and never small.
    return is_capital(word[0]) && small.substr(1) == word.substr(1) && within_.contains(word) &&
                   !counts_.contains(small)
               ? WordKind::kName
               : WordKind::kCommon;
  }
  const WordFrequencies& counts() const { return counts_; }

 private:
  WordFrequencies counts_;
  std::unordered_set<std::string_view> within_;  // seen inside a sentence
  std::size_t most_ = 0;
};

struct ReturningSite {
  const TextDocument* document = nullptr;
  std::size_t begin = 0, first = 0, second = 0;  // words
  WordKind kind = WordKind::kCommon;
};

// Both times after a space, so that the tokens are those of a word inside a line.
bool after_space(const TextDocument& document, std::size_t i) {
  const std::string_view before = document.before(i);
  return !before.empty() && before.back() == ' ';
}

// Possessives and words that hyphens or letters of another kind go on with are cut elsewhere.
bool stands_alone(const TextDocument& document, std::size_t i) {
  const std::size_t end = document.words[i].end;
  return end == document.text.size() ||
         std::string_view(" \n.,;:!?\")").find(document.text[end]) != std::string_view::npos;
}

// Whether the letters of the word are nowhere else before its second time, not in "Harrow's" or
// "HARROW" either: the corrupt passage would still have them.
bool is_there_once(const ReturningSite& site) {
  const TextDocument& document = *site.document;
  const std::size_t begin = document.words[site.begin].begin;
  const std::string passage = in_small_letters(
      std::string_view(document.text).substr(begin, document.words[site.second].begin - begin));
  const std::string word = in_small_letters(document.word(site.second));
  return passage.find(word) == passage.rfind(word);
}

std::vector<ReturningSite> returning_sites(const TaskText& text, const WordKinds& kinds) {
  std::vector<ReturningSite> sites;
  for (const TextDocument& document : text.documents) {
    std::unordered_map<std::string_view, std::size_t> places;  // where a word was last
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      const auto [place, is_new] = places.try_emplace(document.word(i), i);
      const std::size_t first = std::exchange(place->second, i);
      if (is_new || i - first < kLeastApart || i - first > kMostApart) continue;
      const WordKind kind = kinds.kind(document.word(i));
      if (kind == WordKind::kCommon || !after_space(document, first) || !after_space(document, i) ||
          !stands_alone(document, first))
        continue;
      // From the beginning of its sentence, or of the one before where it is the first word, so
      // that the word is not what every head rests on.
      const std::optional<std::size_t> begin =
          document.passage_begin(document.words[first].begins_sentence ? first - 1 : first, i);
      if (!begin) continue;
      const ReturningSite site = {&document, *begin, first, i, kind};
      if (is_there_once(site)) sites.push_back(site);
    }
  }
  return sites;
}

struct Replacement {
  std::string_view word;
  TokenId first_token = 0;  // that is more than the space before it
};

TokenId first_of_word(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  return ids.size() > 1 && tokenizer.token_bytes(ids[0]) == " " ? ids[1] : ids[0];
}

// Names and rare words by a word that the text has before them ("": any), kind and number of
// tokens; each once, in the order of the alphabet.
using Replacements =
    std::map<std::tuple<std::string_view, WordKind, std::size_t>, std::vector<Replacement>>;

// "" at the beginning and after punctuation.
std::string_view word_before(const TextDocument& document, std::size_t i) {
  return i > 0 && document.before(i) == " " ? document.word(i - 1) : std::string_view();
}

Replacements replacements_in(const TaskText& text, const WordKinds& kinds,
                             const Tokenizer& tokenizer) {
  struct Cut {
    WordKind kind = WordKind::kCommon;
    std::vector<TokenId> ids = {};
  };
  std::unordered_map<std::string_view, Cut> cuts;
  for (const auto& [word, count] : kinds.counts())
    if (const WordKind kind = kinds.kind(word); count > 1 && kind != WordKind::kCommon)
      cuts[word] = {kind, tokenizer.encode(" " + std::string(word))};
  Replacements replacements;
  for (const TextDocument& document : text.documents)
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      const auto found = cuts.find(document.word(i));
      if (found == cuts.end()) continue;
      const auto& [kind, ids] = found->second;
      for (const std::string_view before : {word_before(document, i), std::string_view()})
        replacements[{before, kind, ids.size()}].push_back(
            {found->first, first_of_word(ids, tokenizer)});
    }
  for (auto& [key, words] : replacements) {
    std::sort(words.begin(), words.end(),
              [](const Replacement& a, const Replacement& b) { return a.word < b.word; });
    const auto same = [](const Replacement& a, const Replacement& b) { return a.word == b.word; };
    words.erase(std::unique(words.begin(), words.end(), same), words.end());
  }
  return replacements;
}

TaskPair returning_pair(const ReturningSite& site, const Replacements& replacements,
                        const Tokenizer& tokenizer, Random& random) {
  const TextDocument& document = *site.document;
  const std::size_t begin = document.words[site.begin].begin,
                    end = document.words[site.second].begin - 1;  // before the space
  const std::size_t at = document.words[site.first].begin - begin;
  const std::string word(document.word(site.second));
  TaskPair pair;
  pair.clean.prompt = document.text.substr(begin, end - begin);
  pair.clean.answer = " " + word;
  pair.clean.text = pair.clean.prompt + pair.clean.answer;
  pair.clean.roles = {{"W1", at, at + word.size()}};
  const std::vector<TokenId> ids = tokenizer.encode(pair.clean.answer);
  // Without a word that fits the pair is one of different lengths, and is dropped and counted so.
  pair.corrupt = pair.clean.prompt.substr(0, at) + pair.clean.prompt.substr(at + word.size());
  pair.clean.wrong = {" the"};
  for (const std::string_view before : {word_before(document, site.second), std::string_view()}) {
    const auto found = replacements.find({before, site.kind, ids.size()});
    if (found == replacements.end()) continue;
    for (int tries = 0; tries < kReplacementsTried; ++tries) {
      const auto& [other, first_token] =
          found->second[static_cast<std::size_t>(random.below(found->second.size()))];
      if (first_token == first_of_word(ids, tokenizer) ||
          pair.clean.prompt.find(other) != std::string::npos)
        continue;
      std::string corrupt = pair.clean.prompt;
      corrupt.replace(at, word.size(), other);
      if (!stand_side_by_side(tokenizer, pair.clean.prompt, corrupt, ids.size())) continue;
      pair.corrupt = std::move(corrupt);
      pair.clean.wrong = {" " + std::string(other)};
      return pair;
    }
  }
  return pair;
}

}  // namespace

DrawPair returning_word_draw(const TaskMaterial& material) {
  const WordKinds kinds(*material.text);
  const auto replacements =
      std::make_shared<Replacements>(replacements_in(*material.text, kinds, material.tokenizer));
  return draw_each<ReturningSite>(
      returning_sites(*material.text, kinds),
      [replacements, material](const ReturningSite& site, Random& random) {
        return asked_where_they_part(
            returning_pair(site, *replacements, material.tokenizer, random), material.tokenizer);
      });
}

}  // namespace filigree

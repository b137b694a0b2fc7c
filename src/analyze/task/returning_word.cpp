// A name or rare word that returns. In the corrupt passage another name or rare word of the text,
// of equally many tokens, stands where it stood first.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "filigree/analyze/task/text_passages.h"
#include "filigree/analyze/task/text_tasks.h"

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

std::vector<ReturningSite> returning_sites(const TaskText& text, const WordKinds& kinds) {
  struct Seen {
    std::optional<std::size_t> last, before_last;
  };
  std::vector<ReturningSite> sites;
  for (const TextDocument& document : text.documents) {
    std::unordered_map<std::string_view, Seen> places;
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      Seen& seen = places[document.word(i)];
      const Seen earlier = std::exchange(seen, {i, seen.last});
      if (!earlier.last || i - *earlier.last < kLeastApart || i - *earlier.last > kMostApart)
        continue;
      const std::size_t first = *earlier.last;
      const WordKind kind = kinds.kind(document.word(i));
      if (kind == WordKind::kCommon || !after_space(document, first) || !after_space(document, i) ||
          !stands_alone(document, first))
        continue;
      // From the beginning of its sentence, or of the one before where it is the first word, so
      // that the word is not what every head rests on.
      const std::optional<std::size_t> begin =
          document.passage_begin(document.words[first].begins_sentence ? first - 1 : first, i);
      if (!begin || (earlier.before_last && *earlier.before_last >= *begin)) continue;
      sites.push_back({&document, *begin, first, i, kind});
    }
  }
  return sites;
}

struct Replacement {
  std::string_view word;
  TokenId first_token = 0;
};

// Names and rare words by kind and number of tokens.
using Replacements = std::map<std::pair<WordKind, std::size_t>, std::vector<Replacement>>;

Replacements replacements_in(const WordKinds& kinds, const Tokenizer& tokenizer) {
  std::vector<std::string_view> words;
  for (const auto& [word, count] : kinds.counts())
    if (count > 1 && kinds.kind(word) != WordKind::kCommon) words.push_back(word);
  std::sort(words.begin(), words.end());  // a hash table has another order elsewhere
  Replacements replacements;
  for (const std::string_view word : words) {
    const std::vector<TokenId> ids = tokenizer.encode(" " + std::string(word));
    replacements[{kinds.kind(word), ids.size()}].push_back({word, ids[0]});
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
  const auto found = replacements.find({site.kind, ids.size()});
  // Without a word that fits the pair is one of different lengths, and is dropped and counted so.
  pair.corrupt = pair.clean.prompt.substr(0, at) + pair.clean.prompt.substr(at + word.size());
  pair.clean.wrong = {" the"};
  if (found == replacements.end()) return pair;
  for (int tries = 0; tries < kReplacementsTried; ++tries) {
    const auto& [other, first_token] =
        found->second[static_cast<std::size_t>(random.below(found->second.size()))];
    if (first_token == ids[0] || pair.clean.prompt.find(other) != std::string::npos) continue;
    std::string corrupt = pair.clean.prompt;
    corrupt.replace(at, word.size(), other);
    if (!stand_side_by_side(tokenizer, pair.clean.prompt, corrupt, ids.size())) continue;
    pair.corrupt = std::move(corrupt);
    pair.clean.wrong = {" " + std::string(other)};
    break;
  }
  return pair;
}

}  // namespace

DrawPair returning_word_draw(const TaskMaterial& material) {
  const WordKinds kinds(*material.text);
  const auto replacements =
      std::make_shared<Replacements>(replacements_in(kinds, material.tokenizer));
  return draw_each<ReturningSite>(
      returning_sites(*material.text, kinds),
      [replacements, material](const ReturningSite& site, Random& random) {
        return returning_pair(site, *replacements, material.tokenizer, random);
      });
}

}  // namespace filigree

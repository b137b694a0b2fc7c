#include "text/merge_learner.h"

#include <algorithm>
#include <map>
#include <random>

#include "text/text_test_support.h"

namespace filigree {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

WordCounts counted(const Counts& words) {
  WordCounts counts;
  for (const auto& [word, times] : words) counts.add(word, times);
  return counts;
}

// "left+right" of every rule, by rank.
std::vector<std::string> rules_of(const LearnedMerges& learned, TokenId first_byte_id) {
  std::vector<std::string> rules;
  const auto token = [&](TokenId id) {
    return learned.tokens.at(static_cast<std::size_t>(id - first_byte_id));
  };
  for (const auto& [left, right] : learned.rules) rules.push_back(token(left) + "+" + token(right));
  return rules;
}

std::vector<std::string> learn(const Counts& words, const MergeLearnerOptions& options) {
  return rules_of(learn_merges(counted(words), options, {}), options.first_byte_id);
}

using Rules = std::vector<std::string>;

TEST(MergeLearner, JoinsTheMostFrequentPairFirst) {
  // ab 5 + 3, bc 3, ca 2; then c joins ab (3 times), and so on.
  const Counts words = {{"ab", 5}, {"abc", 3}, {"ca", 2}};
  EXPECT_EQ(learn(words, {.vocab_size = 1000}), (Rules{"a+b", "ab+c", "c+a"}));
  EXPECT_EQ(learn(words, {.vocab_size = 258}), (Rules{"a+b", "ab+c"}));
  EXPECT_EQ(learn(words, {.vocab_size = 1000, .min_frequency = 3}), (Rules{"a+b", "ab+c"}));
  EXPECT_EQ(learn(words, {.vocab_size = 256}), Rules{});
  EXPECT_EQ(learn({}, {.vocab_size = 1000}), Rules{});
}

TEST(MergeLearner, AmongEqualsTheSmallerIdsWin) {
  EXPECT_EQ(learn({{"xy", 1}, {"ab", 1}, {"az", 1}}, {.vocab_size = 1000}),
            (Rules{"a+b", "a+z", "x+y"}));
  // Ids follow the byte-level alphabet: the space (as U+0120) comes after every letter.
  EXPECT_EQ(learn({{" a", 1}, {"zz", 1}}, {.vocab_size = 1000}), (Rules{"z+z", " +a"}));
}

TEST(MergeLearner, OverlappingPairsAreJoinedFromTheLeft) {
  // aaaaa: four pairs, but joining leaves aa aa a.
  EXPECT_EQ(learn({{"aaaaa", 1}}, {.vocab_size = 1000}), (Rules{"a+a", "aa+a", "aa+aaa"}));
}

TEST(MergeLearner, SomeTokensAreNotMade) {
  EXPECT_EQ(learn({{"abcd", 9}}, {.vocab_size = 1000, .max_token_bytes = 2}),
            (Rules{"a+b", "c+d"}));
  EXPECT_EQ(learn({{"1234", 9}, {"12", 5}, {"34", 3}}, {.vocab_size = 1000, .max_digits = 2}),
            (Rules{"1+2", "3+4"}));
  EXPECT_EQ(learn({{"abc", 9}}, {.vocab_size = 1000, .forbidden = {"ab"}}), (Rules{"b+c", "a+bc"}));
}

TEST(MergeLearner, NumbersTokensFromTheFirstByteOn) {
  const LearnedMerges learned =
      learn_merges(counted({{"ab", 5}}), {.vocab_size = 1000, .first_byte_id = 7}, {});
  ASSERT_EQ(learned.tokens.size(), 257u);
  EXPECT_EQ(learned.tokens[0], "!");
  EXPECT_EQ(learned.tokens[256], "ab");
  EXPECT_EQ(learned.rules[0], (std::pair<TokenId, TokenId>(7 + 'a' - '!', 7 + 'b' - '!')));
}

TEST(MergeLearner, ReportsProgress) {
  Counts words;
  for (int i = 0; i < 400; ++i)
    words[std::string{static_cast<char>('A' + i % 20), static_cast<char>('a' + i / 20)}] = 1;
  std::vector<std::size_t> reports;
  learn_merges(counted(words), {.vocab_size = 500},
               [&](std::size_t tokens) { reports.push_back(tokens); });
  ASSERT_GE(reports.size(), 3u);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_LE(reports.back(), 500u);
}

// The definition, without any bookkeeping: recount everything for every rule.
std::vector<std::string> learn_by_definition(const Counts& counts, std::size_t vocab_size) {
  std::map<std::string, TokenId> ids;
  for (const std::uint8_t byte : bytes_in_alphabet_order())
    ids.emplace(std::string(1, static_cast<char>(byte)), static_cast<TokenId>(ids.size()));
  std::map<TokenId, std::string> bytes;
  for (const auto& [token, id] : ids) bytes[id] = token;
  std::vector<std::pair<std::vector<TokenId>, std::uint64_t>> words;
  for (const auto& [word, times] : counts) {
    words.push_back({{}, times});
    for (const char byte : word) words.back().first.push_back(ids.at(std::string(1, byte)));
  }
  std::vector<std::string> rules;
  while (ids.size() < vocab_size) {
    std::map<std::pair<TokenId, TokenId>, std::uint64_t> pairs;
    for (const auto& [symbols, times] : words)
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
        pairs[{symbols[i], symbols[i + 1]}] += times;
    if (pairs.empty()) break;
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // of equals the first, which has the smaller ids
        })->first;
    const std::string joined = bytes[best.first] + bytes[best.second];
    rules.push_back(bytes[best.first] + "+" + bytes[best.second]);
    const auto [entry, added] = ids.emplace(joined, static_cast<TokenId>(ids.size()));
    EXPECT_TRUE(added) << joined << " is made twice";
    bytes[entry->second] = joined;
    for (auto& [symbols, times] : words) {
      std::vector<TokenId> after;
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool here =
            i + 1 < symbols.size() && symbols[i] == best.first && symbols[i + 1] == best.second;
        after.push_back(here ? entry->second : symbols[i]);
        if (here) ++i;
      }
      symbols = after;
    }
  }
  return rules;
}

TEST(MergeLearner, FollowsTheDefinitionOnRandomWords) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const std::size_t letters = 1 + random() % 3;
    Counts words;
    for (int i = 0; i < 40; ++i) {
      std::string word(1 + random() % 25, 'a');
      for (char& letter : word) letter = static_cast<char>('a' + random() % letters);
      words[word] += 1 + random() % 20;
    }
    const std::size_t vocab_size = 256 + random() % 120;
    ASSERT_EQ(learn(words, {.vocab_size = vocab_size}), learn_by_definition(words, vocab_size))
        << "round " << round;
  }
}

}  // namespace
}  // namespace filigree

#include "text/bpe_model.h"

#include <random>

#include "text/text_test_support.h"

namespace filigree {
namespace {

// The tokens of `word`, written as in the vocabulary and separated by spaces.
std::string encode(const BpeModel& model, std::string_view word) {
  std::vector<TokenId> ids;
  model.encode_word(word, ids);
  std::string tokens;
  for (const TokenId id : ids) {
    if (!tokens.empty()) tokens += ' ';
    tokens += *model.vocabulary().token(id);
  }
  return tokens;
}

TEST(BpeModel, LowestRankFirstThenLeftmost) {
  const BpeModel model = model_of(spec_with_rules({{"b", "c"}, {"a", "b"}, {"a", "bc"}}));
  EXPECT_EQ(encode(model, ""), "");
  EXPECT_EQ(encode(model, "a"), "a");
  EXPECT_EQ(encode(model, "ab"), "ab");
  EXPECT_EQ(encode(model, "abc"), "abc");  // bc, then a bc
  EXPECT_EQ(encode(model, "abab"), "ab ab");
  EXPECT_EQ(encode(model, "\n ab"), "Ċ Ġ ab");
  const BpeModel runs = model_of(spec_with_rules({{"a", "a"}, {"aa", "a"}}));
  EXPECT_EQ(encode(runs, "aaaaa"), "aa aaa");
}

// A rule may come before the rule that makes its parts.
TEST(BpeModel, NewPairOfLowerRankGoesBeforeTheRest) {
  TokenizerSpec spec = spec_with_rules({{"a", "b"}, {"ab", "x"}});
  std::swap(spec.rules[0], spec.rules[1]);
  EXPECT_EQ(encode(model_of(spec), "abxab"), "abx ab");
}

TEST(BpeModel, AppendsToWhatIsThere) {
  const BpeModel model = model_of(spec_with_rules({{"a", "b"}}));
  std::vector<TokenId> ids = {5};
  model.encode_word("ab", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{5, 256}));
}

// The definition, step by step: apply the best rule at its leftmost place until none applies.
std::vector<TokenId> encode_by_definition(const BpeModel& model, std::string_view word) {
  std::vector<TokenId> ids;
  for (const char byte : word)
    ids.push_back(*model.vocabulary().find(byte_level_character(static_cast<std::uint8_t>(byte))));
  while (true) {
    std::size_t best_rank = model.rules().size();
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (model.rules()[rank] == std::pair(ids[i], ids[i + 1])) {
          best_rank = rank;
          best_at = i;
        }
      }
    }
    if (best_rank == model.rules().size()) return ids;
    const std::string joined = std::string(*model.vocabulary().token(ids[best_at])) +
                               std::string(*model.vocabulary().token(ids[best_at + 1]));
    ids[best_at] = *model.vocabulary().find(joined);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BpeModel, ShortAndLongWordsFollowTheDefinition) {
  const std::vector<std::pair<std::string, std::string>> rules = {
      {"a", "b"},    {"b", "a"},  {"ab", "ab"},  {"a", "a"}, {"ba", "b"},
      {"c", "abab"}, {"aa", "c"}, {"abab", "c"}, {"b", "b"}, {"bb", "a"}};
  TokenizerSpec in_order = spec_with_rules(rules);
  TokenizerSpec shuffled = in_order;
  std::mt19937 random(4);
  std::shuffle(shuffled.rules.begin(), shuffled.rules.end(), random);
  for (const TokenizerSpec& spec : {in_order, shuffled}) {
    const BpeModel model = model_of(spec);
    for (int round = 0; round < 600; ++round) {
      std::string word(random() % 120, 'a');  // both sides of the change of method
      for (char& letter : word) letter = static_cast<char>('a' + random() % 3);
      std::vector<TokenId> ids;
      model.encode_word(word, ids);
      ASSERT_EQ(ids, encode_by_definition(model, word)) << word;
    }
  }
}

TEST(BpeModel, AWordOfMegabytes) {
  std::vector<std::pair<std::string, std::string>> rules;
  for (std::string run = "x"; run.size() < 1024; run += run) rules.emplace_back(run, run);
  const BpeModel model = model_of(spec_with_rules(rules));
  std::vector<TokenId> ids;
  model.encode_word(std::string((2 << 20) + 1, 'x'), ids);
  ASSERT_EQ(ids.size(), 2049u);  // 2048 tokens of 1024 and one of 1
  EXPECT_EQ(*model.vocabulary().token(ids[0]), std::string(1024, 'x'));
  EXPECT_EQ(*model.vocabulary().token(ids[2048]), "x");
}

TEST(BpeModel, OfEqualRulesTheLastCounts) {
  TokenizerSpec spec = spec_with_rules({{"a", "b"}, {"b", "c"}});
  spec.rules.push_back({"a", "b", 2});
  EXPECT_EQ(encode(model_of(spec), "abc"), "a bc");
}

TEST(BpeModel, IgnoreMergesTakesWholeWords) {
  TokenizerSpec spec = spec_with_rules({{"a", "b"}});
  spec.vocabulary.push_back({"Ġabc", 257});
  EXPECT_EQ(encode(model_of(spec), " abc"), "Ġ ab c");
  spec.bpe.ignore_merges = true;
  EXPECT_EQ(encode(model_of(spec), " abc"), "Ġabc");
  EXPECT_EQ(encode(model_of(spec), " abcd"), "Ġ ab c d");
}

TEST(BpeModel, BytesWithoutAToken) {
  TokenizerSpec spec;
  spec.vocabulary = {{"a", 0}, {"<unk>", 1}};
  EXPECT_EQ(encode(model_of(spec), "aa"), "a a");
  EXPECT_ERROR(encode(model_of(spec), "ab"), "no token 'b' for byte 0x62");
  spec.bpe.unknown_token = "<none>";  // not in the vocabulary either
  EXPECT_ERROR(encode(model_of(spec), "ab"), "no token 'b' for byte 0x62");
  spec.bpe.unknown_token = "<unk>";
  EXPECT_EQ(encode(model_of(spec), "abba"), "a <unk> <unk> a");
  spec.bpe.fuse_unknown = true;
  EXPECT_EQ(encode(model_of(spec), "abbab"), "a <unk> a <unk>");
}

TEST(BpeModel, RulesMustNameTokens) {
  for (const auto& [left, right, missing] :
       {std::tuple("q", "b", "names 'q'"), std::tuple("a", "q", "names 'q'"),
        std::tuple("b", "a", "names 'ba'"), std::tuple("", "a", "names ''")}) {
    TokenizerSpec spec;
    spec.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}};
    spec.rules = {{"a", "b", 2}, {left, right, 3}};
    spec.rules_name = "merges.txt: line";
    EXPECT_ERROR(model_of(spec), "merges.txt: line 3: ");
    EXPECT_ERROR(model_of(spec), missing);
  }
}

}  // namespace
}  // namespace filigree

#include "text/vocabulary.h"

#include <limits>

#include "text/text_test_support.h"

namespace filigree {
namespace {

TEST(Vocabulary, FindsTokensAndIdsBothWays) {
  const Vocabulary vocabulary({{"a", 3}, {"Ġb", 0}}, "v");
  EXPECT_EQ(vocabulary.id_limit(), 4u);
  EXPECT_EQ(vocabulary.entry_count(), 2u);
  EXPECT_EQ(vocabulary.find("a"), 3);
  EXPECT_EQ(vocabulary.find("Ġb"), 0);
  EXPECT_EQ(vocabulary.find("b"), std::nullopt);
  EXPECT_EQ(vocabulary.token(0), "Ġb");
  EXPECT_EQ(vocabulary.token(1), std::nullopt);  // unused ids are allowed
  EXPECT_EQ(vocabulary.token(4), std::nullopt);
  EXPECT_EQ(vocabulary.token(-1), std::nullopt);
}

TEST(Vocabulary, RefusesBadEntries) {
  EXPECT_ERROR(Vocabulary({}, "v"), "v: the vocabulary is empty");
  EXPECT_ERROR(Vocabulary({{"", 0}}, "v"), "v: the token with id 0 is empty");
  EXPECT_ERROR(Vocabulary({{"a", 0}, {"a", 1}}, "v"), "v: token 'a' occurs twice");
  EXPECT_ERROR(Vocabulary({{"a", 1}, {"b", 1}}, "v"), "tokens 'a' and 'b' have the same id 1");
  EXPECT_ERROR(Vocabulary({{"a", -1}}, "v"), "token 'a' has id -1");
  EXPECT_ERROR(Vocabulary({{"\xFF", 1}}, "v"), "not valid UTF-8");
  EXPECT_ERROR(Vocabulary({{std::string(kMaxTokenBytes + 1, 'a'), 1}}, "v"),
               "65537 bytes long; at most 65536");
}

TEST(Vocabulary, BoundsIdsByTheNumberOfTokens) {
  EXPECT_EQ(Vocabulary({{"a", 65537}}, "v").id_limit(), 65538u);
  EXPECT_ERROR(Vocabulary({{"a", 65538}}, "v"), "id 65538; with 1 tokens");
  EXPECT_ERROR(Vocabulary({{"a", std::numeric_limits<TokenId>::max()}}, "v"), "2147483647");
}

}  // namespace
}  // namespace filigree

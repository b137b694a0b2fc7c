#include "text/added_tokens.h"

#include "text/text_test_support.h"
#include "text/unicode_whitespace.h"

namespace filigree {
namespace {

// "text" for text, "<id>" for a token, separated by '|'.
std::string split(const std::vector<AddedToken>& tokens, std::string_view text,
                  bool special = true) {
  std::string all;
  std::deque<std::string> storage;
  for (const TextSegment& segment : AddedTokens(tokens).split(text, special, storage)) {
    if (!all.empty()) all += "|";
    all += segment.id == TextSegment::kText ? std::string(segment.text)
                                            : fmt::format("<{}>", segment.id);
  }
  return all;
}

TEST(AddedTokens, CutsTheTextAroundThem) {
  const std::vector<AddedToken> tokens = {{.content = "<end>", .id = 7}};
  EXPECT_EQ(split(tokens, ""), "");
  EXPECT_EQ(split(tokens, "plain < text"), "plain < text");
  EXPECT_EQ(split(tokens, "<end>"), "<7>");
  EXPECT_EQ(split(tokens, "a<end><end> b<en"), "a|<7>|<7>| b<en");
  EXPECT_EQ(split(tokens, "<<end>>"), "<|<7>|>");
  EXPECT_EQ(split({}, "no tokens"), "no tokens");
}

TEST(AddedTokens, LeftmostThenLongest) {
  const std::vector<AddedToken> tokens = {
      {.content = "ab", .id = 1}, {.content = "abcd", .id = 2}, {.content = "bcx", .id = 3}};
  EXPECT_EQ(split(tokens, "abcd"), "<2>");
  EXPECT_EQ(split(tokens, "abcx"), "<1>|cx");
  EXPECT_EQ(split(tokens, "bcxab"), "<3>|<1>");
}

TEST(AddedTokens, SpecialOnesCanStayText) {
  const std::vector<AddedToken> tokens = {{.content = "<s>", .id = 1},
                                          {.content = "<s", .id = 2, .special = false}};
  EXPECT_EQ(split(tokens, "a<s>b<s"), "a|<1>|b|<2>");
  // The longest match is dropped as a whole.
  EXPECT_EQ(split(tokens, "a<s>b<s", false), "a<s>b|<2>");
}

TEST(AddedTokens, NormalizedOnesSearchWhatTheOthersLeave) {
  const std::vector<AddedToken> tokens = {
      {.content = "xyz", .id = 1, .special = false, .normalized = true},
      {.content = "yz!", .id = 2}};
  EXPECT_EQ(split(tokens, "xyz!xyz"), "x|<2>|<1>");
}

TEST(AddedTokens, SwallowWhiteSpaceWhenAsked) {
  const std::vector<AddedToken> tokens = {{.content = "<l>", .id = 1, .strip_left = true},
                                          {.content = "<r>", .id = 2, .strip_right = true}};
  EXPECT_EQ(split(tokens, "a \u00a0\u3000<l> b"), "a|<1>| b");
  EXPECT_EQ(split(tokens, "a <r>\n\u3000 b"), "a |<2>|b");
  EXPECT_EQ(split(tokens, " <l>  <l>"), "<1>|<1>");
  EXPECT_EQ(split(tokens, "<r>  <l>x"), "<2>|<1>|x");
}

TEST(AddedTokens, WhiteSpaceIsWhatUnicodeSays) {
  int count = 0;
  for (char32_t code = 0; code < 0x110000; ++code) count += is_unicode_whitespace(code);
  EXPECT_EQ(count, 25);  // as many as the Unicode character database lists
  EXPECT_FALSE(is_unicode_whitespace(0x180E));
  EXPECT_FALSE(is_unicode_whitespace(0x200B));
}

TEST(AddedTokens, RefusesWhatCannotBeMatched) {
  EXPECT_ERROR(AddedTokens({{.content = "", .id = 3}}), "id 3: its content is empty");
  EXPECT_ERROR(AddedTokens({{.content = std::string(1025, 'x'), .id = 3}}), "1025 bytes long");
  EXPECT_ERROR(AddedTokens({{.content = "\xFF", .id = 3}}), "not valid UTF-8");
  EXPECT_ERROR(AddedTokens({{.content = "a", .id = 3}, {.content = "a", .id = 4}}),
               "'a' is listed twice");
}

}  // namespace
}  // namespace filigree

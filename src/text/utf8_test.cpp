#include "filigree/text/utf8.h"

#include <gtest/gtest.h>

#include "filigree/base/strings.h"

namespace filigree {
namespace {

using Kind = Utf8Sequence::Kind;

TEST(Utf8, ClassifiesTheStartOfAText) {
  struct Case {
    std::string text;
    Kind kind;
    std::size_t length;
  };
  for (const Case& c : {
           Case{"a", Kind::kCharacter, 1},
           Case{"\xC3\xA9x", Kind::kCharacter, 2},
           Case{"\xE6\x97\xA5", Kind::kCharacter, 3},
           Case{"\xF0\x9F\x98\x80", Kind::kCharacter, 4},
           Case{"\xF4\x8F\xBF\xBF", Kind::kCharacter, 4},
           Case{"\xF0\x9F\x98", Kind::kIncomplete, 3},
           Case{"\xC3", Kind::kIncomplete, 1},
           Case{"\x80", Kind::kInvalid, 1},              // no start
           Case{"\xC0\xAF", Kind::kInvalid, 1},          // overlong
           Case{"\xE0\x80\x80", Kind::kInvalid, 1},      // overlong
           Case{"\xED\xA0\x80", Kind::kInvalid, 1},      // surrogate
           Case{"\xF4\x90\x80\x80", Kind::kInvalid, 1},  // beyond U+10FFFF
           Case{"\xF5", Kind::kInvalid, 1},
           Case{"\xE6\x97z", Kind::kInvalid, 2},
       }) {
    const Utf8Sequence got = utf8_sequence(c.text);
    EXPECT_EQ(got.kind, c.kind) << printable(c.text);
    EXPECT_EQ(got.length, c.length) << printable(c.text);
  }
}

TEST(Utf8, FindsTheFirstInvalidByteAtEveryOffset) {
  for (std::size_t before = 0; before < 20; ++before) {
    const std::string good = std::string(before, 'x') + "\xC3\xA9" + "tail longer than eight";
    EXPECT_EQ(first_invalid_utf8(good), good.size());
    const std::string bad = std::string(before, 'x') + "\xFF" + "tail longer than eight";
    EXPECT_EQ(first_invalid_utf8(bad), before);
    const std::string cut = std::string(before, 'x') + "\xE6\x97";
    EXPECT_EQ(first_invalid_utf8(cut), before);
  }
}

TEST(Utf8, AgreesWithTheBaseModuleOnAllPairsAndTriplesOfBytes) {
  for (int a = 0x7E; a < 256; ++a) {
    for (int b = 0x7E; b < 256; ++b) {
      for (const char* tail : {"", "\x80", "\x80\x80", "z"}) {
        const std::string text = std::string{static_cast<char>(a), static_cast<char>(b)} + tail;
        EXPECT_EQ(first_invalid_utf8(text) == text.size(), is_valid_utf8(text)) << printable(text);
      }
    }
  }
}

TEST(Utf8, ReplacesEachInvalidSequenceOnce) {
  EXPECT_EQ(replace_invalid_utf8("plain"), "plain");
  EXPECT_EQ(replace_invalid_utf8("a\xFF\xFE"
                                 "b"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  // A cut-off character is one sequence; a surrogate is three.
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\xEF\xBF\xBD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(replace_invalid_utf8("\xE6\x97"
                                 "A"),
            "\xEF\xBF\xBD"
            "A");
}

TEST(Utf8, CodePointsAndWhitespace) {
  EXPECT_EQ(utf8_code_point("A"), U'A');
  EXPECT_EQ(utf8_code_point("\xC2\xA0"), 0xA0u);
  EXPECT_EQ(utf8_code_point("\xE3\x80\x80"), 0x3000u);
  EXPECT_EQ(utf8_code_point("\xF0\x9F\x98\x80"), 0x1F600u);
  int count = 0;
  for (char32_t code = 0; code < 0x110000; ++code) count += is_unicode_whitespace(code);
  EXPECT_EQ(count, 25);  // as many as the Unicode character database lists
  EXPECT_FALSE(is_unicode_whitespace(0x180E));
  EXPECT_FALSE(is_unicode_whitespace(0x200B));
}

}  // namespace
}  // namespace filigree

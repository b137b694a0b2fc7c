#include "base/utf8.h"

#include <gtest/gtest.h>

#include "filigree/names.h"

namespace filigree {
namespace {

using namespace std::string_view_literals;
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

// As many strings of two, three and four bytes are one character as there are code points for them.
TEST(Utf8, OneStringACodePoint) {
  const auto is_one = [](const std::string& text) {
    const Utf8Sequence sequence = utf8_sequence(text);
    return sequence.is_character() && sequence.length == text.size();
  };
  std::size_t two = 0, three = 0;
  std::string text(2, 0);
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      text[0] = static_cast<char>(a), text[1] = static_cast<char>(b);
      two += is_one(text);
    }
  EXPECT_EQ(two, 0x800u - 0x80u);
  text.resize(3);
  for (int a = 0x80; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      for (int c = 0; c < 256; ++c) {
        text[0] = static_cast<char>(a), text[1] = static_cast<char>(b),
        text[2] = static_cast<char>(c);
        three += is_one(text);
      }
  EXPECT_EQ(three, 0x10000u - 0x800u - 0x800u);  // less the surrogates
  // The last two bytes of four are free continuations.
  std::size_t four = 0;
  text.resize(4);
  for (int a = 0x80; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      for (const char* tail :
           {"\x80\x80", "\xBF\xBF", "\x7F\x80", "\xC0\x80", "\x80\x7F", "\x80\xC0"}) {
        text = std::string{static_cast<char>(a), static_cast<char>(b)} + tail;
        four += is_one(text);
      }
  EXPECT_EQ(four * 64 * 64 / 2, 0x110000u - 0x10000u);
}

TEST(Utf8, WritesWhatItReads) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const Utf8Sequence sequence = utf8_sequence(text + "x");
    ASSERT_TRUE(sequence.is_character()) << static_cast<std::uint32_t>(code);
    ASSERT_EQ(sequence.length, text.size()) << static_cast<std::uint32_t>(code);
    ASSERT_TRUE(sequence.code == code) << static_cast<std::uint32_t>(code);
    ASSERT_FALSE(continues_utf8(text[0]));
    for (std::size_t i = 1; i < text.size(); ++i)
      ASSERT_TRUE(continues_utf8(text[i])) << static_cast<std::uint32_t>(code);
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

TEST(Utf8, AcceptsWellFormedText) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("plain"));
  EXPECT_TRUE(is_valid_utf8("\u00e9 \u20ac \U0001F600"));
  EXPECT_TRUE(is_valid_utf8("\xED\x9F\xBF"));      // U+D7FF, before the surrogates
  EXPECT_TRUE(is_valid_utf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
  EXPECT_TRUE(is_valid_utf8("a\0b"sv));
}

TEST(Utf8, RefusesMalformedText) {
  EXPECT_FALSE(is_valid_utf8("\x80"));              // continuation alone
  EXPECT_FALSE(is_valid_utf8("\xC3"));              // cut off
  EXPECT_FALSE(is_valid_utf8("\xE2\x82"));          // cut off
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));          // overlong
  EXPECT_FALSE(is_valid_utf8("\xE0\x80\x80"));      // overlong
  EXPECT_FALSE(is_valid_utf8("\xF0\x80\x80\x80"));  // overlong
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));  // beyond U+10FFFF
  EXPECT_FALSE(is_valid_utf8("\xFF"));
  EXPECT_FALSE(is_valid_utf8("\xC3("));
}

}  // namespace
}  // namespace filigree

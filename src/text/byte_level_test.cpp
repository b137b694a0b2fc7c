#include "text/byte_level.h"

#include <gtest/gtest.h>

#include <set>

namespace filigree {
namespace {

TEST(ByteLevel, KnownCharacters) {
  EXPECT_EQ(byte_level_character('!'), "!");
  EXPECT_EQ(byte_level_character('~'), "~");
  EXPECT_EQ(byte_level_character(0), "Ā");
  EXPECT_EQ(byte_level_character('\n'), "Ċ");
  EXPECT_EQ(byte_level_character(' '), "Ġ");
  EXPECT_EQ(byte_level_character(0x7F), "ġ");
  EXPECT_EQ(byte_level_character(0xA0), "ł");
  EXPECT_EQ(byte_level_character(0xA1), "¡");
  EXPECT_EQ(byte_level_character(0xAD), "Ń");
  EXPECT_EQ(byte_level_character(0xFF), "ÿ");
  EXPECT_EQ(to_byte_level(" caf\xC3\xA9"), "ĠcafÃ©");
}

TEST(ByteLevel, EveryByteComesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(from_byte_level(to_byte_level(bytes)), bytes);
  EXPECT_EQ(from_byte_level(""), "");
}

TEST(ByteLevel, OtherCharactersHaveNoByte) {
  for (const char* token : {" ", "a b", "\n", "\xC2\xAD", "ń", "日", "Ġ\xFF"})
    EXPECT_EQ(from_byte_level(token), std::nullopt) << token;
}

TEST(ByteLevel, AlphabetIsOrderedByCodePoint) {
  const auto& order = bytes_in_alphabet_order();
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 256u);
  EXPECT_EQ(order[0], '!');
  EXPECT_EQ(order[187], 0xFF);  // the last that stands for itself
  EXPECT_EQ(order[188], 0x00);
  EXPECT_EQ(order[255], 0xAD);
}

}  // namespace
}  // namespace filigree

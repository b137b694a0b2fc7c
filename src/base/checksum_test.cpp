#include "base/checksum.h"

#include <gtest/gtest.h>

#include <set>

namespace filigree {
namespace {

TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum_text(xxh64("")), "ef46db3751d8e999");
  EXPECT_EQ(checksum_text(xxh64("a")), "d24ec4f1a98c6e5b");
  EXPECT_EQ(checksum_text(xxh64("abc")), "44bc2cf5ad770999");
  EXPECT_EQ(checksum_text(xxh64("Nobody inspects the spammish repetition")), "fbcea83c8a378bf1");
}

// Every length up to 300, each seeded by the one before, against a program in Python.
TEST(Checksum, IsXxh64OfEveryLengthAndSeed) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 37);
  std::uint64_t sum = 0;
  for (std::size_t length = 0; length <= bytes.size(); ++length)
    sum = xxh64(std::string_view(bytes).substr(0, length), sum);
  EXPECT_EQ(checksum_text(sum), "3b9b529f922ac7d4");
}

TEST(Checksum, DependsOnEveryByteAndTheLength) {
  std::set<std::uint64_t> seen;
  std::string text(70, '\0');
  for (std::size_t length = 0; length <= text.size(); ++length)
    EXPECT_TRUE(seen.insert(xxh64(std::string_view(text).substr(0, length))).second);
  for (char& byte : text) {
    byte = 1;
    EXPECT_TRUE(seen.insert(xxh64(text)).second);
    byte = 0;
  }
  EXPECT_TRUE(seen.insert(xxh64(text, 1)).second);
}

}  // namespace
}  // namespace filigree

#include "filigree/text/shard_checksum.h"

#include <gtest/gtest.h>

#include <set>

namespace filigree {
namespace {

TEST(ShardChecksum, IsXxh64) {
  EXPECT_EQ(checksum_text(xxh64("")), "ef46db3751d8e999");
  EXPECT_EQ(checksum_text(xxh64("a")), "d24ec4f1a98c6e5b");
  EXPECT_EQ(checksum_text(xxh64("abc")), "44bc2cf5ad770999");
  EXPECT_EQ(checksum_text(xxh64("Nobody inspects the spammish repetition")), "fbcea83c8a378bf1");
}

TEST(ShardChecksum, DependsOnEveryByteAndTheLength) {
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

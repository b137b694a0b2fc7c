#include "hub/content_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace filigree::hub {
namespace {

using Kind = ContentHash::Kind;

std::string hash_of(Kind kind, const std::string& text) {
  ContentHash hash(kind, text.size());
  for (const char c : text) hash.add({&c, 1});
  return hash.finish();
}

// The SHA-256 of "abc" is FIPS 180-2's example, the others are `git hash-object`'s.
TEST(ContentHash, IsSha256AndGits) {
  EXPECT_EQ(hash_of(Kind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of(Kind::kGit, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(hash_of(Kind::kGit, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(ContentHash, StartsAgain) {
  ContentHash hash(Kind::kGit, 6);
  hash.add("other");
  hash.restart();
  hash.add("hello\n");
  EXPECT_EQ(hash.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(ContentHash, AnEtagTellsItsKind) {
  EXPECT_EQ(ContentHash::kind_of(std::string(64, 'a')), Kind::kSha256);
  EXPECT_EQ(ContentHash::kind_of(std::string(40, '0')), Kind::kGit);
  for (const std::string& etag :
       {std::string(), std::string(32, 'a'), std::string(64, 'A'), std::string(40, 'g')})
    EXPECT_EQ(ContentHash::kind_of(etag), std::nullopt) << etag;
}

}  // namespace
}  // namespace filigree::hub

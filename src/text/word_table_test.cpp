#include "text/word_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "text/pair_table.h"

namespace filigree {
namespace {

TEST(WordTable, NumbersWordsInOrderOfArrival) {
  WordTable table;
  EXPECT_EQ(table.find(""), WordTable::kAbsent);
  EXPECT_EQ(table.intern("b"), 0u);
  EXPECT_EQ(table.intern("a"), 1u);
  EXPECT_EQ(table.intern(""), 2u);
  EXPECT_EQ(table.intern(std::string_view("a\0", 2)), 3u);
  EXPECT_EQ(table.intern("b"), 0u);
  EXPECT_EQ(table.find("a"), 1u);
  EXPECT_EQ(table.find("c"), WordTable::kAbsent);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0], "b");
  EXPECT_EQ(table[2], "");
  EXPECT_EQ(table[3], std::string_view("a\0", 2));
}

TEST(WordTable, AgreesWithAMapOnManyRandomWords) {
  std::mt19937 random(1);
  WordTable table;
  std::map<std::string, std::uint32_t> expected;
  for (int i = 0; i < 100000; ++i) {
    std::string word(random() % 20, 'a');
    for (char& letter : word) letter = static_cast<char>('a' + random() % 3);
    const auto [entry, added] = expected.emplace(word, static_cast<std::uint32_t>(expected.size()));
    ASSERT_EQ(table.intern(word), entry->second);
  }
  ASSERT_EQ(table.size(), expected.size());
  for (const auto& [word, index] : expected) {
    ASSERT_EQ(table.find(word), index);
    ASSERT_EQ(table[index], word);
  }
}

TEST(PairTable, AgreesWithAMapOnManyRandomPairs) {
  std::mt19937 random(2);
  PairTable table;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected;
  for (int i = 0; i < 100000; ++i) {
    const std::pair<std::uint32_t, std::uint32_t> pair(random() % 300, random() % 300);
    ASSERT_EQ(table.find(pair.first, pair.second) != nullptr, expected.contains(pair));
    const auto value = static_cast<std::uint64_t>(i);
    ASSERT_EQ(table.insert(pair.first, pair.second, value),
              expected.emplace(pair, value).first->second);
  }
  ASSERT_EQ(table.size(), expected.size());
  for (const auto& [pair, value] : expected) {
    ASSERT_NE(table.find(pair.first, pair.second), nullptr);
    ASSERT_EQ(*table.find(pair.first, pair.second), value);
  }
}

}  // namespace
}  // namespace filigree

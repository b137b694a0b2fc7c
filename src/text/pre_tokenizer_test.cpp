#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace filigree {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  PreTokenScanner scanner(text);
  for (std::string_view word; scanner.next(word);) words.emplace_back(word);
  return words;
}

using Words = std::vector<std::string>;

TEST(PreTokenizer, CutsAsThePatternSays) {
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words_of("don't we'll I'm they've 'd"),
            (Words{"don", "'t", " we", "'ll", " I", "'m", " they", "'ve", " '", "d"}));
  EXPECT_EQ(words_of("DON'T"), (Words{"DON", "'", "T"}));  // contractions are lower case
  EXPECT_EQ(words_of("abc123 45x"), (Words{"abc", "123", " 45", "x"}));
  EXPECT_EQ(words_of("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words_of("a\n\n b"), (Words{"a", "\n\n", " b"}));
  EXPECT_EQ(words_of("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(words_of("a \t "), (Words{"a", " \t "}));
  EXPECT_EQ(words_of("?! ... x"), (Words{"?!", " ...", " x"}));
}

TEST(PreTokenizer, ClassesAreUnicode) {
  EXPECT_EQ(words_of("na\u00efve \u65e5\u672c\u8a9e"),
            (Words{"na\u00efve", " \u65e5\u672c\u8a9e"}));
  EXPECT_EQ(words_of("x\u00b2\u0663"), (Words{"x", "\u00b2\u0663"}));  // numbers of other scripts
  EXPECT_EQ(words_of("a\u00a0b"), (Words{"a", "\u00a0", "b"}));  // only U+0020 goes with a word
  EXPECT_EQ(words_of("a\u3000\u3000b"), (Words{"a", "\u3000", "\u3000", "b"}));
  EXPECT_EQ(words_of("a\u2028\u0085"), (Words{"a", "\u2028\u0085"}));
  // Not white space: U+180E since Unicode 6.3, U+200B and U+001C never were.
  EXPECT_EQ(words_of("!\u180e\u200b\x1c!"), (Words{"!\u180e\u200b\x1c!"}));
  // A combining mark is no letter.
  EXPECT_EQ(words_of("e\u0301e"), (Words{"e", "\u0301", "e"}));
}

TEST(PreTokenizer, OneWordOfManyMegabytes) {
  const std::size_t size = 6 << 20;
  EXPECT_EQ(words_of(std::string(size, 'x')).size(), 1u);
  EXPECT_EQ(words_of(std::string(size, ' ')).size(), 1u);
  EXPECT_EQ(words_of(std::string(size, '?')).size(), 1u);
  const Words before_word = words_of(std::string(size, ' ') + "x");
  ASSERT_EQ(before_word.size(), 2u);
  EXPECT_EQ(before_word[0].size(), size - 1);
  EXPECT_EQ(before_word[1], " x");
  std::string wide;
  for (std::size_t i = 0; i < size / 3; ++i) wide += "\u3000";
  EXPECT_EQ(words_of(wide).size(), 1u);
}

// Cutting at every border, alone and all together, leaves the words as they are.
TEST(PreTokenizer, BordersDoNotChangeTheWords) {
  const std::vector<std::string> parts = {" ", " ",      "\n",     "\t",  "\r",     "a",
                                          "b", "'s",     "'",      "7",   "\u00a0", "\u3000",
                                          "!", "\u65e5", "\u00e9", "\x1c"};
  std::mt19937 random(3);
  std::size_t borders = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (std::size_t i = random() % 24; i > 0; --i) text += parts[random() % parts.size()];
    const Words expected = words_of(text);
    Words in_pieces;
    std::size_t done = 0;
    for (std::size_t p = pre_token_border(text, 0); p < text.size();
         p = pre_token_border(text, p + 1)) {
      ++borders;
      Words cut_once = words_of(std::string_view(text).substr(0, p));
      for (const std::string& word : words_of(std::string_view(text).substr(p)))
        cut_once.push_back(word);
      ASSERT_EQ(cut_once, expected) << "cut at " << p << " of '" << text << "'";
      for (const std::string& word : words_of(std::string_view(text).substr(done, p - done)))
        in_pieces.push_back(word);
      done = p;
    }
    for (const std::string& word : words_of(std::string_view(text).substr(done)))
      in_pieces.push_back(word);
    ASSERT_EQ(in_pieces, expected) << text;
  }
  EXPECT_GT(borders, 1000u);
}

TEST(PreTokenizer, BorderIsTheFirstAtOrAfterTheStart) {
  const std::string_view text = " one two  three";
  EXPECT_EQ(pre_token_border(text, 0), 4u);  // never an empty first part
  EXPECT_EQ(pre_token_border(text, 4), 4u);
  EXPECT_EQ(pre_token_border(text, 5), 9u);  // the second of two spaces
  EXPECT_EQ(pre_token_border(text, 10), text.size());
  EXPECT_EQ(pre_token_border(text, 1000), text.size());
  EXPECT_EQ(pre_token_border("", 0), 0u);
}

TEST(PreTokenizer, ThreadsDoNotDisturbEachOther) {
  const std::string text = "It's 12 o'clock,\n\n  she said; \u65e5\u672c ";
  const Words expected = words_of(text);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) count += words_of(text) != expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace filigree

#include "text/corpus/compose.h"

#include <set>

#include "text/corpus/words.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

TEST(CorpusWords, AreManyAndDifferent) {
  const auto expect = [](std::span<const std::string_view> list, std::size_t least) {
    EXPECT_GE(list.size(), least);
    EXPECT_EQ(std::set<std::string_view>(list.begin(), list.end()).size(), list.size());
  };
  expect(corpus::male_names(), 100);
  expect(corpus::female_names(), 100);
  expect(corpus::names(), 200);  // different: no name is on both lists
  expect(corpus::places(), 60);
  expect(corpus::things(), 60);
  expect(corpus::containers(), 30);
  expect(corpus::professions(), 40);
  expect(corpus::plain_words(), 80);
}

TEST(Compose, FillsPatterns) {
  const corpus::Slots slots = {{"x", "apple"}, {"y", "university"}, {"z", "key"}};
  const TaskExample example = corpus::compose("{^x}: {a x}, {a y},[ {a z}] {z}.", slots);
  EXPECT_EQ(example.prompt, "Apple: an apple, a university,");
  EXPECT_EQ(example.answer, " a key");
  EXPECT_EQ(example.text, "Apple: an apple, a university, a key key.");
  EXPECT_ERROR(corpus::compose("{w}[ {x}]", slots), "the slot 'w'");
  EXPECT_ERROR(corpus::compose("{x}", slots), "has no answer");
  EXPECT_ERROR(corpus::fill("{x", slots), "is not closed");
}

}  // namespace
}  // namespace filigree

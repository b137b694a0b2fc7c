#include "base/table.h"

#include <gtest/gtest.h>

#include "filigree/error.h"

namespace filigree {
namespace {

TEST(Table, AlignsColumnsUnderTheirTitles) {
  Table table({{"name"}, {"count", Align::kRight}});
  table.add({"a", "1"});
  table.add({"longer", "1,234"});
  EXPECT_EQ(table.text(),
            "name    count\n"
            "------  -----\n"
            "a           1\n"
            "longer  1,234\n");
}

TEST(Table, WithoutTitlesThereIsNoHeading) {
  Table table({{""}, {""}});
  table.add({"model", "gpt2"});
  table.add({"gate", ""});
  EXPECT_EQ(table.text(2), "  model  gpt2\n  gate\n");
}

TEST(Table, CountsWhatCharactersTakeOnTheScreen) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("naïve"), 5u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);  // e and a combining accent
  EXPECT_EQ(display_width("\U0001F44D"), 2u);
  EXPECT_EQ(display_width("\xff"), 1u);  // shown as a replacement character
  Table table({{""}, {""}});
  table.add({"日本", "1"});
  table.add({"abcd", "2"});
  EXPECT_EQ(table.text(), "日本  1\nabcd  2\n");
}

TEST(Table, ARowOfTheWrongLengthIsAnError) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add({"only one"}), Error);
}

TEST(Wrap, BreaksBetweenWordsWithinTheColumns) {
  EXPECT_EQ(wrap("one two three", 80, 4), "one two three");
  EXPECT_EQ(wrap("one two three", 11, 4), "one two\n    three");  // 4 + 7 = 11
  EXPECT_EQ(wrap("one two three", 10, 4), "one\n    two\n    three");
  EXPECT_EQ(wrap("unbreakable word", 5, 2), "unbreakable\n  word");
  EXPECT_EQ(wrap("", 10, 2), "");
}

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(format_seconds(0.00025), "250 us");
  EXPECT_EQ(format_seconds(0.0183), "18.3 ms");
  EXPECT_EQ(format_seconds(0.9996), "1 s");
  EXPECT_EQ(format_seconds(3.4159), "3.42 s");
  EXPECT_EQ(format_seconds(123.4), "123 s");
}

}  // namespace
}  // namespace filigree

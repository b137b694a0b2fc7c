// Names, numbers and untrusted text for messages.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "filigree/names.h"

namespace filigree {
namespace {

using namespace std::string_view_literals;

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("hook_z", "hook_q"), 1u);
}

TEST(NearestNames, OrdersByDistanceAndKeepsTies) {
  const std::vector<std::string> names = {"hook_q", "hook_k", "hook_resid_pre", "hook_z"};
  EXPECT_EQ(nearest_names("hook_zz", names, 2), (std::vector<std::string>{"hook_z", "hook_q"}));
  EXPECT_EQ(nearest_names("hook_x", names, 3),
            (std::vector<std::string>{"hook_q", "hook_k", "hook_z"}));
  EXPECT_EQ(nearest_names("x", names, 9).size(), 4u);
  EXPECT_TRUE(nearest_names("x", {}, 3).empty());
}

TEST(NearestNames, IsQuickForAHugeName) {
  const std::string huge(1'000'000, 'a');
  const std::vector<std::string> names(10, huge);
  EXPECT_EQ(nearest_names(huge, names, 1).size(), 1u);
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "", "c"}, ", "), "a, , c");
}

TEST(Percent, HasThreeDigitsAndNoFalseHundred) {
  EXPECT_EQ(percent(0.000583), "0.0583 %");
  EXPECT_EQ(percent(0.5), "50 %");
  EXPECT_EQ(percent(0.9994), "99.9 %");
  EXPECT_EQ(percent(1.0), "100 %");
  EXPECT_EQ(percent(0.0), "0 %");
}

TEST(HumanBytes, PicksTheUnit) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(human_bytes(999'949), "999.9 kB");
  EXPECT_EQ(human_bytes(999'950), "1.0 MB");
  EXPECT_EQ(human_bytes(999'999), "1.0 MB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "18446.7 PB");
}

TEST(WithThousands, GroupsDigits) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(124'439'808), "124,439,808");
}

TEST(Printable, KeepsGoodTextAndEscapesTheRest) {
  EXPECT_EQ(printable("h\u00e9llo"), "h\u00e9llo");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("a\0b"sv), "a\\x00b");
  EXPECT_EQ(printable("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");  // a control sequence for some terminals
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("ab\u20ac", 4), "ab...");
  EXPECT_EQ(printable("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(printable("a", 0), "...");
  EXPECT_EQ(printable("", 0), "");
}

TEST(TerminalText, KeepsLayoutAndEscapesWhatATerminalMayObey) {
  EXPECT_EQ(terminal_text("a\tb\nü日"), "a\tb\nü日");
  EXPECT_EQ(terminal_text("\x1b[31m\r\x7f\xc2\x9b"), "\\x1b[31m\\x0d\\x7f\\xc2\\x9b");
  EXPECT_EQ(terminal_text("\xff"), "\\xff");
  EXPECT_EQ(terminal_text("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(terminal_json("{\n  \"a\": \"\xc2\x9b\x7f\u2066\"\n}"),
            "{\n  \"a\": \"\\u009b\\u007f\\u2066\"\n}");
}

TEST(Counted, HasThePluralOfItsNumber) {
  EXPECT_EQ(counted(0, "prompt"), "0 prompts");
  EXPECT_EQ(counted(1, "prompt"), "1 prompt");
  EXPECT_EQ(counted(1024, "attention edge"), "1,024 attention edges");
}

}  // namespace
}  // namespace filigree

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/maps.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string names(std::string_view text, std::int64_t layers = 4, std::int64_t heads = 3) {
  std::string joined;
  for (const HeadId& head : parse_heads(text, layers, heads))
    joined += (joined.empty() ? "" : " ") + head_name(head);
  return joined;
}

std::string error(std::string_view text) {
  try {
    return "no error: " + names(text, 12, 12);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(HeadSelection, ReadsEveryForm) {
  EXPECT_EQ(names("L2H1"), "L2H1");
  EXPECT_EQ(names("l2h1"), "L2H1");
  EXPECT_EQ(names("2.1"), "L2H1");
  EXPECT_EQ(names("L2H*"), "L2H0 L2H1 L2H2");
  EXPECT_EQ(names("2.*"), "L2H0 L2H1 L2H2");
  EXPECT_EQ(names("L2"), "L2H0 L2H1 L2H2");
  EXPECT_EQ(names("L*H1"), "L0H1 L1H1 L2H1 L3H1");
  EXPECT_EQ(names("*.1"), "L0H1 L1H1 L2H1 L3H1");
  EXPECT_EQ(names("3.0-3.1"), "L3H0 L3H1");
  EXPECT_EQ(names("L1H2-L2H0"), "L1H2 L2H0");
  EXPECT_EQ(names("L1-L2"), "L1H0 L1H1 L1H2 L2H0 L2H1 L2H2");
  EXPECT_EQ(parse_heads("*", 4, 3).size(), 12u);
  EXPECT_EQ(names("all"), names("*"));
  EXPECT_EQ(names("L*H*"), names("*"));
}

TEST(HeadSelection, ListsAreSortedWithoutDoubles) {
  EXPECT_EQ(names("L3H2, 0.1,L3H*,L0H1"), "L0H1 L3H0 L3H1 L3H2");
  EXPECT_EQ(names("L5H1,L6H*,3.0-3.5,L2H1-L2H4,*", 12, 12), names("*", 12, 12));
}

TEST(HeadSelection, SaysWhichHeadsExist) {
  for (const char* text : {"L12H0", "L0H12", "3.12", "3.0-3.12", "L99999999999999999999H0"})
    EXPECT_THAT(error(text), AllOf(HasSubstr("no '"), HasSubstr(text),
                                   HasSubstr("12 layers, L0 to L11, of 12 heads, H0 to H11")));
}

TEST(HeadSelection, RefusesWhatIsNoSelection) {
  for (const char* text : {"", ",", "L1H1,", "5", "H3", "L", "L1H", "L1Hx", "L-1H0", "L1H1-", "-",
                           "L1H1-L2", "L*H1-L*H2", "L1H1 L2H2", "L1.1", "1H1", "**", "L1H1-L1H*"})
    EXPECT_THAT(error(text), HasSubstr("is not a choice of heads; write L5H1")) << text;
  EXPECT_THAT(error("L2H3-L2H1"), HasSubstr("runs backwards; write L2H1-L2H3"));
  EXPECT_THAT(error("L4-L2"), HasSubstr("runs backwards; write L2-L4"));
}

TEST(HeadSelection, WhatIsNoSelectionShowsWithoutAModel) {
  for (const char* text : {"L5H1", "L6H*,3.0-3.5", "*", "L99999999999999999999H0", "L2-L400"})
    EXPECT_NO_THROW(check_heads(text)) << text;
  for (const char* text : {"", "L3Hx", "5", "L1H1-L2", "L2H3-L2H1", "L4-L2"})
    EXPECT_THROW(check_heads(text), Error) << text;
}

}  // namespace
}  // namespace filigree

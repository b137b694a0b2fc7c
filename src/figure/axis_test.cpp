#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "filigree/error.h"
#include "filigree/figures.h"

namespace filigree::figure {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> out;
  for (const Tick& tick : axis.ticks()) out.push_back(tick.label);
  return out;
}

TEST(Axis, LinearTicksAreRoundNumbers) {
  EXPECT_THAT(labels(Axis({.low = 0, .high = 1}, {}, 5)),
              ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels(Axis({.low = -30, .high = 30}, {}, 4)), ElementsAre("\u221220", "0", "20"));
  EXPECT_THAT(labels(Axis({.format = NumberFormat::kPercent, .low = 0, .high = 0.5}, {}, 3)),
              ElementsAre("0 %", "20 %", "40 %"));
  EXPECT_THAT(labels(Axis({.low = 0, .high = 30'000}, {}, 3)),
              ElementsAre("0", "10,000", "20,000", "30,000"));
}

TEST(Axis, CountsHaveNoFractions) {
  EXPECT_THAT(labels(Axis({.low = -0.4, .high = 1.4, .whole = true}, {}, 5)),
              ElementsAre("0", "1"));
  EXPECT_THAT(labels(Axis({.low = -0.4, .high = 11.4, .whole = true}, {}, 5)),
              ElementsAre("0", "5", "10"));
}

TEST(Axis, EndsHoldTheData) {
  const std::array<double, 3> data = {0.13, 0.5, 0.87};
  const Axis loose({}, data, 5);
  EXPECT_LT(loose.low(), 0.13);
  EXPECT_GT(loose.high(), 0.87);
  const Axis rounded({.include = {0}, .ends_on_ticks = true}, data, 5);
  EXPECT_EQ(rounded.low(), 0);
  EXPECT_DOUBLE_EQ(rounded.high(), 1);
  EXPECT_DOUBLE_EQ(rounded.position(0.5), 0.5);
}

TEST(Axis, LogTicksArePowersOfTen) {
  const std::array<double, 2> wide = {0.0006, 1};
  EXPECT_THAT(labels(Axis({.scale = AxisScale::kLog, .format = NumberFormat::kPercent}, wide, 5)),
              ElementsAre("0.1 %", "1 %", "10 %", "100 %"));
  const std::array<double, 2> narrow = {12, 80};
  EXPECT_THAT(labels(Axis({.scale = AxisScale::kLog}, narrow, 5)), ElementsAre("20", "50"));
  const std::array<double, 2> huge = {1e-9, 1e9};
  EXPECT_LE(labels(Axis({.scale = AxisScale::kLog}, huge, 5)).size(), 5u);
  const Axis axis({.scale = AxisScale::kLog, .low = 1, .high = 100}, {}, 5);
  EXPECT_DOUBLE_EQ(axis.position(10), 0.5);
}

TEST(Axis, OddDataStillMakeAnAxis) {
  for (const double value : {0.0, 5.0, -5.0, 1e-12, 1e12}) {
    const std::array<double, 1> one = {value};
    const Axis axis({}, one, 4);
    EXPECT_LT(axis.low(), axis.high()) << value;
    EXPECT_GE(axis.ticks().size(), 2u) << value;
    EXPECT_GE(axis.position(value), 0) << value;
    EXPECT_LE(axis.position(value), 1) << value;
  }
  const Axis none({}, {}, 4);
  EXPECT_LT(none.low(), none.high());
  const std::array<double, 2> zero = {0, 1};
  EXPECT_THROW(Axis({.scale = AxisScale::kLog}, zero, 4), Error);
}

TEST(FormatNumber, ShowsTheDigitsAskedFor) {
  EXPECT_EQ(format_number(0.00591, 2, NumberFormat::kPercent), "0.59 %");
  EXPECT_EQ(format_number(-0.25, 2), "\u22120.25");
  EXPECT_EQ(format_number(1234567, 3), "1,234,567");
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(1.5e-7, 2), "1.5 × 10⁻⁷");
  EXPECT_EQ(format_number(42, 2), "42");
}

}  // namespace
}  // namespace filigree::figure

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/figures.h"
#include "support/errors.h"

namespace filigree::figure {
namespace {

using testing::HasSubstr;

TEST(Heatmap, ExactZeroIsToldApartFromTheSmallestValue) {
  const ColorScale magnitude, difference = {ScaleKind::kDifference, 1};
  EXPECT_EQ(level_of(0, magnitude), 0);
  EXPECT_EQ(level_of(1e-30, magnitude), 1);
  EXPECT_EQ(level_of(1, magnitude), 255);
  EXPECT_EQ(level_of(7, magnitude), 255);
  EXPECT_EQ(level_of(0, difference), 0);
  EXPECT_EQ(level_of(1e-30, difference), 129);
  EXPECT_EQ(level_of(-1e-30, difference), 127);
  EXPECT_EQ(level_of(1, difference), 255);
  EXPECT_EQ(level_of(-1, difference), 1);
  EXPECT_EQ(level_of(std::numeric_limits<double>::quiet_NaN(), difference), 128);
  for (const std::string& name : theme_names()) {
    const Theme& theme = theme_named(name);
    const LevelColors colors = level_colors(magnitude, theme);
    const std::uint8_t least = level_of(1e-30, magnitude);
    // 8 of 255 in one channel is what an eye sees at an edge.
    const double apart = std::abs(luminance(colors[0]) - luminance(colors[least]));
    EXPECT_GT(apart, 0.015) << name;
  }
}

TEST(Heatmap, DifferencesRunThroughTheColourOfNone) {
  const ColorScale scale = {ScaleKind::kDifference, 2};
  const auto distance = [](const Color& a, const Color& b) {
    return std::max(
        {std::abs(a.red - b.red), std::abs(a.green - b.green), std::abs(a.blue - b.blue)});
  };
  for (const std::string& name : theme_names()) {
    const Theme& theme = theme_named(name);
    const LevelColors colors = level_colors(scale, theme);
    const auto color = [&](double value) { return colors[level_of(value, scale)]; };
    EXPECT_LT(distance(color(1e-6), color(0)), 0.03) << name;
    EXPECT_LT(distance(color(-1e-6), color(0)), 0.03) << name;
    // No step anywhere between the ends is larger than an eye takes for one colour.
    for (double value = -2; value < 2; value += 2.0 / 127)
      EXPECT_LT(distance(color(value), color(value + 2.0 / 127)), 0.05) << name << " " << value;
    // A tenth of the scale is seen.
    EXPECT_GT(distance(color(0.2), color(0)), 0.04) << name;
    EXPECT_GT(distance(color(0.2), color(-0.2)), 0.04) << name;
    EXPECT_EQ(colors[128], theme.undefined);
  }
}

TEST(Heatmap, LightnessFollowsTheValue) {
  for (const std::string& name : theme_names()) {
    const Theme& theme = theme_named(name);
    const LevelColors colors = level_colors({}, theme);
    const double direction = luminance(colors[255]) - luminance(colors[0]) > 0 ? 1 : -1;
    for (std::size_t level = 1; level < 256; ++level)
      EXPECT_GE(direction * (luminance(colors[level]) - luminance(colors[level - 1])), -1e-9)
          << name << " " << level;
  }
}

TEST(Heatmap, NothingAboveTheDiagonalIsReadOrDrawn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {1, nan, nan, 0.5f, 0, nan, 0, 0.25f, 1};
  const LevelMap map = make_levels(values, {3, 3, true}, {}, "map");
  EXPECT_EQ(map.levels, (std::vector<std::uint8_t>{255, 0, 0, 128, 0, 0, 0, 65, 255}));
}

TEST(Heatmap, MergingKeepsTheLargestMagnitude) {
  std::vector<float> values(64 * 64);
  values[50 * 64 + 20] = 0.7f;
  const LevelMap map = make_levels(values, {64, 64, true}, {}, "map", 16);
  ASSERT_EQ(map.rows, 16u);
  std::size_t filled = 0;
  for (const std::uint8_t level : map.levels) filled += level != 0;
  EXPECT_EQ(filled, 1u);
  EXPECT_EQ(map.levels[12 * 16 + 5], level_of(0.7, {}));

  const ColorScale scale = {ScaleKind::kDifference, 1};
  const std::vector<float> pair = {0.1f, -0.6f, 0.2f, 0};
  const LevelMap merged = make_levels(pair, {2, 2, false}, scale, "map", 1);
  EXPECT_EQ(merged.levels, std::vector<std::uint8_t>{level_of(-0.6, scale)});
}

TEST(Heatmap, EveryCellSurvivesAnyReduction) {
  // One cell after the other alone in its map, and a size that does not divide.
  for (std::size_t i = 0; i < 37; ++i) {
    std::vector<float> values(37 * 37);
    values[i * 37 + i / 2] = 1;
    const LevelMap map = make_levels(values, {37, 37, true}, {}, "map", 10);
    EXPECT_NE(std::count(map.levels.begin(), map.levels.end(), 255), 0) << i;
  }
}

TEST(Heatmap, RepeatingKeepsCells) {
  const LevelMap map = {1, 2, {3, 200}};
  const LevelMap larger = resample(map, ScaleKind::kMagnitude, 2, 6);
  EXPECT_EQ(larger.levels,
            (std::vector<std::uint8_t>{3, 3, 3, 200, 200, 200, 3, 3, 3, 200, 200, 200}));
}

TEST(Heatmap, ErrorsNameTheMapAndTheCell) {
  std::vector<float> values = {1, 0, 0.5f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THAT(error_of([&] {
                make_levels(values, {2, 2, true}, {}, "head L3H4");
              }),
              HasSubstr("head L3H4: the value at query 1, key 1 is nan"));
  values[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of([&] {
                make_levels(values, {2, 2, true}, {}, "head L3H4");
              }),
              HasSubstr("is inf"));
  values[3] = -1;
  EXPECT_THAT(error_of([&] {
                make_levels(values, {2, 2, true}, {}, "head L3H4");
              }),
              HasSubstr("a difference scale can"));
  EXPECT_THAT(error_of([&] {
                make_levels(values, {3, 3, true}, {}, "head L3H4");
              }),
              HasSubstr("4 values for a map of 3 x 3"));
  EXPECT_THAT(error_of([&] {
                make_levels({}, {0, 0, true}, {}, "head L3H4");
              }),
              HasSubstr("no cells"));
  EXPECT_THAT(error_of([&] {
                make_levels(values, {2, 2, true}, {ScaleKind::kMagnitude, 0}, "map");
              }),
              HasSubstr("ends at 0"));
}

}  // namespace
}  // namespace filigree::figure

#include "filigree/palette.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace filigree {
namespace {

// Relative luminance (WCAG): 0 black, 1 white.
double luminance(Rgb color) {
  const auto linear = [&](int shift) {
    const double value = ((color >> shift) & 255) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0);
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

TEST(Palette, CanBeReadAndToldApart) {
  for (const Palette& palette : {kLightPalette, kDarkPalette, print_palette()}) {
    SCOPED_TRACE(hex_text(palette.page) + " " + hex_text(palette.text));
    for (const Rgb behind : {palette.page, palette.panel, palette.plot}) {
      EXPECT_GT(contrast(palette.text, behind), 7);
      EXPECT_GT(contrast(palette.muted, behind), 4.5);
    }
    EXPECT_NE(palette.empty, palette.magnitude.front());
    EXPECT_NE(palette.empty, palette.negative.front());
    EXPECT_NE(palette.empty, palette.positive.front());
    EXPECT_EQ(std::set<Rgb>(palette.categories.begin(), palette.categories.end()).size(),
              palette.categories.size());
  }
}

TEST(Palette, RampsLeaveTheEmptyColourSteadily) {
  for (const Palette& palette : {kLightPalette, kDarkPalette}) {
    const auto check = [&](const auto& ramp) {
      double before = contrast(palette.empty, ramp.front());
      for (std::size_t i = 1; i < ramp.size(); ++i) {
        const double here = contrast(palette.empty, ramp[i]);
        EXPECT_GT(here, before) << hex_text(ramp[i]);
        before = here;
      }
    };
    check(palette.magnitude);
    check(palette.negative);
    check(palette.positive);
  }
}

TEST(Palette, MixesAndWritesColours) {
  EXPECT_EQ(mixed(0x000000, 0xFFFFFF, 0.5), 0x808080u);
  EXPECT_EQ(mixed(0x102030, 0x204060, 0), 0x102030u);
  EXPECT_EQ(mixed(0x102030, 0x204060, 1), 0x204060u);
  EXPECT_EQ(hex_text(0xD55E00), "#D55E00");
  EXPECT_EQ(hex_text(0x00000A), "#00000A");
}

TEST(Palette, TellsTheInputsAndPartsOfACircuitApart) {
  for (const Palette& palette : {kLightPalette, kDarkPalette}) {
    const std::set<Rgb> edges = {
        edge_color(palette, GraphInput::kQuery), edge_color(palette, GraphInput::kKey),
        edge_color(palette, GraphInput::kValue), edge_color(palette, GraphInput::kNone)};
    EXPECT_EQ(edges.size(), 4u);
    const std::set<Rgb> nodes = {node_color(palette, ComponentKind::kHead),
                                 node_color(palette, ComponentKind::kMlp),
                                 node_color(palette, ComponentKind::kInput)};
    EXPECT_EQ(nodes.size(), 3u);
    EXPECT_EQ(node_color(palette, ComponentKind::kInput),
              node_color(palette, ComponentKind::kLogits));
    EXPECT_EQ(node_color(palette, ComponentKind::kExpert),
              node_color(palette, ComponentKind::kMlp));
    for (const Rgb node : nodes) EXPECT_GT(contrast(palette.text, node), 4.5);
  }
}

}  // namespace
}  // namespace filigree

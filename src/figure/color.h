// Colours and the ways from a number to a colour.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace filigree::figure {

struct Color {
  double red = 0, green = 0, blue = 0, alpha = 1;  // each in [0, 1], sRGB

  bool operator==(const Color&) const = default;

  // 0xRRGGBB.
  static constexpr Color hex(std::uint32_t rgb, double opacity = 1) {
    return {static_cast<double>((rgb >> 16) & 255) / 255,
            static_cast<double>((rgb >> 8) & 255) / 255, static_cast<double>(rgb & 255) / 255,
            opacity};
  }
  Color with_alpha(double opacity) const { return {red, green, blue, opacity}; }
  // 0xRRGGBB; the opacity is left out.
  std::uint32_t rgb() const;
};

// `part` of the way from `a` to `b`, in sRGB.
Color mix(const Color& a, const Color& b, double part);

// Relative luminance (WCAG): 0 black, 1 white.
double luminance(const Color& color);

// Whichever of the two stands out more against `background`.
Color more_contrast(const Color& a, const Color& b, const Color& background);

// A colour for each of 256 levels, as heat maps hold them (heatmap.h).
using LevelColors = std::array<Color, 256>;

// A piecewise linear path through colours at equal distances.
class ColorRamp {
 public:
  explicit ColorRamp(std::vector<Color> stops) : stops_(std::move(stops)) {}

  // `position` is clamped to [0, 1].
  Color at(double position) const;

 private:
  std::vector<Color> stops_;
};

}  // namespace filigree::figure

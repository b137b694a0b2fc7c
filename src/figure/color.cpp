#include <algorithm>
#include <cmath>

#include "filigree/figures.h"

namespace filigree::figure {

std::uint32_t Color::rgb() const {
  const auto byte = [](double value) {
    return static_cast<std::uint32_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  };
  return byte(red) << 16 | byte(green) << 8 | byte(blue);
}

Color mix(const Color& a, const Color& b, double part) {
  const auto between = [part](double from, double to) { return from + (to - from) * part; };
  return {between(a.red, b.red), between(a.green, b.green), between(a.blue, b.blue),
          between(a.alpha, b.alpha)};
}

double luminance(const Color& color) {
  const auto linear = [](double value) {
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

Color more_contrast(const Color& a, const Color& b, const Color& background) {
  const double behind = luminance(background);
  const auto contrast = [behind](const Color& color) {
    const double front = luminance(color);
    return (std::max(front, behind) + 0.05) / (std::min(front, behind) + 0.05);
  };
  return contrast(a) >= contrast(b) ? a : b;
}

Color ColorRamp::at(double position) const {
  const double scaled = std::clamp(position, 0.0, 1.0) * static_cast<double>(stops_.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(scaled), stops_.size() - 2);
  return mix(stops_[below], stops_[below + 1], scaled - static_cast<double>(below));
}

}  // namespace filigree::figure

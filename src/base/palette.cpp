#include "filigree/palette.h"

#include <fmt/core.h>

#include <cmath>

namespace filigree {

Palette print_palette() {
  Palette palette = kLightPalette;
  palette.panel = palette.page;
  palette.panel_border = 0x6F6F6F;
  palette.text = 0x000000;
  palette.muted = 0x404040;
  palette.grid = 0xE4E4E4;
  palette.frame = 0x9A9A9A;
  return palette;
}

Rgb mixed(Rgb a, Rgb b, double part) {
  const auto channel = [&](int shift) {
    const double from = (a >> shift) & 255, to = (b >> shift) & 255;
    return static_cast<Rgb>(std::lround(from + (to - from) * part)) << shift;
  };
  return channel(16) | channel(8) | channel(0);
}

std::string hex_text(Rgb color) { return fmt::format("#{:06X}", color); }

Rgb edge_color(const Palette& palette, GraphInput input) {
  switch (input) {
    case GraphInput::kQuery: return palette.categories[1];
    case GraphInput::kKey: return palette.categories[0];
    case GraphInput::kValue: return palette.categories[2];
    case GraphInput::kNone: break;
  }
  return palette.muted;
}

Rgb node_color(const Palette& palette, ComponentKind kind) {
  switch (kind) {
    case ComponentKind::kHead: return palette.page;
    case ComponentKind::kMlp:
    case ComponentKind::kExpert: return mixed(palette.page, palette.categories[4], 0.28);
    default: return mixed(palette.page, palette.muted, 0.16);
  }
}

}  // namespace filigree

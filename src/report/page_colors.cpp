#include "report/page_colors.h"

#include <span>

#include "filigree/palette.h"

namespace filigree {
namespace {

nlohmann::json color_list(std::span<const Rgb> colors) {
  nlohmann::json texts = nlohmann::json::array();
  for (const Rgb color : colors) texts.push_back(hex_text(color));
  return texts;
}

nlohmann::json colors_of(const Palette& palette) {
  return {{"page", hex_text(palette.page)},
          {"panel", hex_text(palette.panel)},
          {"panel_border", hex_text(palette.panel_border)},
          {"text", hex_text(palette.text)},
          {"muted", hex_text(palette.muted)},
          {"grid", hex_text(palette.grid)},
          {"frame", hex_text(palette.frame)},
          {"empty", hex_text(palette.empty)},
          {"magnitude", color_list(palette.magnitude)},
          {"negative", color_list(palette.negative)},
          {"positive", color_list(palette.positive)},
          {"undefined", hex_text(palette.undefined)},
          {"categories", color_list(palette.categories)}};
}

}  // namespace

nlohmann::json page_colors() {
  return {{"light", colors_of(kLightPalette)}, {"dark", colors_of(kDarkPalette)}};
}

}  // namespace filigree

#include <fmt/ranges.h>

#include <span>
#include <utility>

#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

std::vector<Color> colors_of(std::span<const Rgb> values) {
  std::vector<Color> colors;
  for (const Rgb value : values) colors.push_back(Color::hex(value));
  return colors;
}

// From the colour of nothing on.
ColorRamp ramp_from(Rgb empty, std::span<const Rgb> values) {
  std::vector<Color> colors = colors_of(values);
  colors.insert(colors.begin(), Color::hex(empty));
  return ColorRamp(std::move(colors));
}

Theme make_theme(std::string name, const Palette& palette) {
  return {.name = std::move(name),
          .palette = palette,
          .page = Color::hex(palette.page),
          .panel = Color::hex(palette.panel),
          .panel_border = Color::hex(palette.panel_border),
          .plot = Color::hex(palette.plot),
          .text = Color::hex(palette.text),
          .muted = Color::hex(palette.muted),
          .grid = Color::hex(palette.grid),
          .frame = Color::hex(palette.frame),
          .empty = Color::hex(palette.empty),
          .magnitude = ColorRamp(colors_of(palette.magnitude)),
          .negative = ramp_from(palette.empty, palette.negative),
          .positive = ramp_from(palette.empty, palette.positive),
          .undefined = Color::hex(palette.undefined),
          .categories = colors_of(palette.categories)};
}

}  // namespace

Color Theme::difference_at(double part) const {
  return part < 0 ? negative.at(-part) : positive.at(part);
}

const Theme& light_theme() {
  static const Theme theme = make_theme("light", kLightPalette);
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = make_theme("dark", kDarkPalette);
  return theme;
}

const Theme& print_theme() {
  static const Theme theme = make_theme("print", print_palette());
  return theme;
}

const std::vector<std::string>& theme_names() {
  static const std::vector<std::string> names = {"light", "dark", "print"};
  return names;
}

const Theme& theme_named(std::string_view name) {
  for (const Theme* theme : {&light_theme(), &dark_theme(), &print_theme()})
    if (theme->name == name) return *theme;
  fail("there is no figure theme '{}': choose one of {}", printable(name),
       fmt::join(theme_names(), ", "));
}

}  // namespace filigree::figure

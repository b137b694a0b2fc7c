#include "filigree/figure/theme.h"

#include <fmt/ranges.h>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::figure {

namespace {

// Okabe and Ito's colours, vermilion (dense) and blue (sparse) first; then three of Tol's for those
// who need more than eight.
std::vector<Color> categories_on_white() {
  return {Color::hex(0xD55E00), Color::hex(0x0072B2), Color::hex(0x009E73), Color::hex(0xCC79A7),
          Color::hex(0xE69F00), Color::hex(0x56B4E9), Color::hex(0x882255), Color::hex(0x999933),
          Color::hex(0xB8B8B8), Color::hex(0x332288), Color::hex(0x4D4D4D)};
}

std::vector<Color> categories_on_black() {
  return {Color::hex(0xF0853A), Color::hex(0x56B4E9), Color::hex(0x2FC49A), Color::hex(0xE3A0C8),
          Color::hex(0xF0E442), Color::hex(0x3D7FD9), Color::hex(0xC25A8C), Color::hex(0xB5B556),
          Color::hex(0x6B7280), Color::hex(0x8F7FE0), Color::hex(0xD5D9DF)};
}

Theme make_light() {
  return {.name = "light",
          .page = Color::hex(0xFFFFFF),
          .panel = Color::hex(0xF7F9FC),
          .panel_border = Color::hex(0x9DB3CC),
          .plot = Color::hex(0xFFFFFF),
          .text = Color::hex(0x1B2A41),
          .muted = Color::hex(0x5B6B80),
          .grid = Color::hex(0xE3E8EF),
          .frame = Color::hex(0xB9C7D9),
          .empty = Color::hex(0xFFFFFF),
          .magnitude = {Color::hex(0xE6EFF8), Color::hex(0xB9D5EC), Color::hex(0x7DB2DD),
                        Color::hex(0x4187C7), Color::hex(0x1A5AA5), Color::hex(0x08306B)},
          .negative = {Color::hex(0xE4EEF7), Color::hex(0xA5CAE4), Color::hex(0x4C97C8),
                       Color::hex(0x1A5F9E), Color::hex(0x083A73)},
          .positive = {Color::hex(0xFCECDD), Color::hex(0xFAC08F), Color::hex(0xEE8A3C),
                       Color::hex(0xC4570C), Color::hex(0x7F2F04)},
          .undefined = Color::hex(0xD5D8DC),
          .categories = categories_on_white()};
}

Theme make_dark() {
  return {.name = "dark",
          .page = Color::hex(0x10151D),
          .panel = Color::hex(0x161D27),
          .panel_border = Color::hex(0x3C4C61),
          .plot = Color::hex(0x161D27),
          .text = Color::hex(0xE8EDF4),
          .muted = Color::hex(0x9AA8BA),
          .grid = Color::hex(0x2A3442),
          .frame = Color::hex(0x3F4E63),
          .empty = Color::hex(0x0B0F15),
          .magnitude = {Color::hex(0x172C47), Color::hex(0x1C4A7D), Color::hex(0x2B74B8),
                        Color::hex(0x5BA4E0), Color::hex(0xA3D0F3), Color::hex(0xF2F9FF)},
          .negative = {Color::hex(0x16304D), Color::hex(0x1F5A93), Color::hex(0x4A94D2),
                       Color::hex(0x9ACBF0), Color::hex(0xE6F4FF)},
          .positive = {Color::hex(0x41270F), Color::hex(0x8A480F), Color::hex(0xD9772A),
                       Color::hex(0xF7B57C), Color::hex(0xFFEFDF)},
          .undefined = Color::hex(0x454C55),
          .categories = categories_on_black()};
}

Theme make_print() {
  Theme theme = make_light();
  theme.name = "print";
  theme.panel = theme.page;
  theme.panel_border = Color::hex(0x6F6F6F);
  theme.text = Color::hex(0x000000);
  theme.muted = Color::hex(0x404040);
  theme.grid = Color::hex(0xE4E4E4);
  theme.frame = Color::hex(0x9A9A9A);
  return theme;
}

}  // namespace

const Theme& light_theme() {
  static const Theme theme = make_light();
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = make_dark();
  return theme;
}

const Theme& print_theme() {
  static const Theme theme = make_print();
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

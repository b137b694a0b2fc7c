// How all figures look: the colours of base/palette.h, and the few sizes they share. Figures take
// everything visible from here, so that a new theme is one more value and no more code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/palette.h"
#include "figure/color.h"

namespace filigree::figure {

struct Theme {
  std::string name;

  Palette palette;

  // The same as figures use them; what each stands for is said there.
  Color page, panel, panel_border, plot, text, muted, grid, frame;
  Color empty;
  ColorRamp magnitude;
  ColorRamp negative, positive;  // from `empty` on
  Color undefined;

  // Of a difference in [-1, 1]: from `negative` through `empty`, the colour of none, to `positive`.
  Color difference_at(double part) const;

  std::vector<Color> categories;

  // Cyclic.
  const Color& category(std::size_t index) const { return categories[index % categories.size()]; }

  double text_size = 7;   // points; axis names, captions, legends
  double small_size = 6;  // tick labels
  double title_size = 9.5;
  double line_width = 1.1;
  double hair_width = 0.5;
};

const Theme& light_theme();  // screens, slides
const Theme& dark_theme();
const Theme& print_theme();  // papers: nothing tinted behind the data, black text

// "light", "dark" or "print"; throws Error that lists them for anything else.
const Theme& theme_named(std::string_view name);
const std::vector<std::string>& theme_names();

}  // namespace filigree::figure

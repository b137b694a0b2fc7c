// How all figures look: colours, and the few sizes they share. Figures take everything visible from
// here, so that a new theme is one more value and no more code.
//
// Categories use the palette of Okabe and Ito, ordered so that neighbours differ in lightness too;
// dense and sparse are always its first two. Magnitudes use one hue whose lightness grows or falls
// steadily, so that they survive a grey printer and every form of colour blindness; differences use
// blue against orange.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "filigree/figure/color.h"

namespace filigree::figure {

struct Theme {
  std::string name;

  Color page;          // behind everything
  Color panel;         // inside the rounded panels
  Color panel_border;  // around them
  Color plot;          // behind curves, bars and points
  Color text;
  Color muted;  // secondary text, axes
  Color grid;   // grid lines
  Color frame;  // around one heat map

  // Heat maps: `empty` is exact zero and everything above the diagonal. The ramps start at the
  // smallest value that is not zero, and that colour is visibly not `empty`.
  Color empty;
  ColorRamp magnitude;
  ColorRamp negative, positive;  // of differences and correlations, from small to large
  Color undefined;               // a correlation that does not exist

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

// What all figures share on a page: margins, title, caption, legends and colour bars.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "figure/canvas.h"
#include "filigree/figures.h"

namespace filigree::figure {

inline constexpr double kPageMargin = 12;

// A figure with `title` above and `caption` below a body of `body_size`; `draw_body` gets the
// rectangle of the body. Titles are cut to one line, captions wrapped to `caption_lines`.
struct PageParts {
  std::string title = {};
  std::vector<std::string> captions = {};  // one paragraph each
  int caption_lines = 2;                   // of each
};
Figure make_page(const PageParts& parts, Size body_size, const Theme& theme,
                 std::function<void(Canvas&, const Rect&)> draw_body);

// A row of coloured squares with names, wrapped at `width`.
struct LegendEntry {
  std::string label;
  Color color;
  bool line = false;  // a short line instead of a square
  bool dashed = false;
};
double legend_height(const std::vector<LegendEntry>& entries, double width, const Theme& theme);
void draw_legend(Canvas& canvas, Point corner, double width,
                 const std::vector<LegendEntry>& entries, const Theme& theme);

// A horizontal colour bar of `width`, its upper left corner at `corner`, with its ends labelled
// below, `label` to its left or, `label` being empty, nothing. Exact zero of magnitudes is shown as
// a separate square before it. Its height is kColorBarHeight.
inline constexpr double kColorBarHeight = 16;
void draw_color_bar(Canvas& canvas, Point corner, double width, const ColorScale& scale,
                    std::string_view label, const Theme& theme);
// The least width that draw_color_bar() looks well with.
double color_bar_width(const ColorScale& scale, std::string_view label, const Theme& theme);

// A rounded panel with its name in the upper left corner.
inline constexpr double kPanelTitleHeight = 17;
inline constexpr double kPanelPadding = 7;
void draw_panel(Canvas& canvas, const Rect& rect, std::string_view title, const Theme& theme);

}  // namespace filigree::figure

// Curves over a common axis: the piece that training curves and circuit curves are made of, and the
// simplest whole figure. Lines with optional bands, horizontal marks (a threshold, a margin),
// points with a note.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "figure/canvas.h"
#include "filigree/figures.h"

namespace filigree::figure {

struct Curve {
  std::string label = {};  // in the legend; none without one
  std::vector<double> x = {}, y = {};
  // An interval around the curve, drawn as a band; empty or as long as y.
  std::vector<double> low = {}, high = {};
  std::optional<std::size_t> category = {};  // of the theme's colours; the curve's number without
  bool dashed = false;
  bool steps = false;    // constant up to the next x, as counts are
  bool markers = false;  // a dot at every point
};

struct HorizontalMark {
  double y = 0;
  std::string label = {};
};

// A dot with a note beside it; `curve` gives its colour.
struct PointMark {
  double x = 0, y = 0;
  std::string label = {};
  std::size_t curve = 0;
  bool drop_line = false;  // down to the x axis
  bool colored = false;    // the note has the curve's colour too
};

struct LineChart {
  AxisSpec x_axis = {}, y_axis = {};
  std::vector<Curve> curves = {};
  std::vector<HorizontalMark> marks = {};
  std::vector<PointMark> points = {};
};

// Throws Error, naming `what` and the curve, where lengths differ, a number is NaN or infinite, or
// a log axis gets a value that is not above 0.
void check_chart(const LineChart& chart, std::string_view what);

// Draws `chart` so that its plotting area is `area`; tick labels and axis names lie outside, to the
// left and below. `shared_x` leaves out what stands below: another chart under it has it.
// `left_margin`, where given, is where the axis name goes, so that those of stacked charts align.
void draw_line_chart(Canvas& canvas, const Rect& area, const LineChart& chart, const Theme& theme,
                     bool shared_x = false, double left_margin = 0);

// The width that the tick labels and the axis name need to the left of an area of `height`.
double chart_left_margin(const LineChart& chart, double height, const Theme& theme);
// The height that they need below it.
double chart_bottom_margin(const LineChart& chart, const Theme& theme);

// One chart as a figure.
struct LineFigure {
  std::string title = {};
  LineChart chart = {};
  std::string caption = {};
  double width = 340,
         height = 220;  // of the plotting area's surroundings, without title and caption
};

Figure line_figure(const LineFigure& input, const Theme& theme);

}  // namespace filigree::figure

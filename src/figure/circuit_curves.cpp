#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figure/line_chart.h"
#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kColumnWidth = 340, kEffectPageWidth = 516;
constexpr double kChartWidth = 215;  // of three and more
constexpr double kEffectChartHeight = 150;
constexpr double kEffectChartGap = 16;
constexpr double kLeastEffect = -0.25, kMostEffect = 1.3;

void check_curve(const EffectCurve& curve, const std::string& unit) {
  const std::string name = fmt::format("circuit curves: '{}' ({})", printable(curve.name), unit);
  require(!curve.kept.empty() && curve.kept.size() == curve.effect.size(),
          "{} has {} numbers of parts and {} effects", name, curve.kept.size(),
          curve.effect.size());
  require(curve.error.empty() || curve.error.size() == curve.effect.size(),
          "{} has {} effects and {} errors", name, curve.effect.size(), curve.error.size());
  for (std::size_t i = 0; i < curve.kept.size(); ++i) {
    require(std::isfinite(curve.kept[i]) && curve.kept[i] >= 0 &&
                (i == 0 || curve.kept[i] > curve.kept[i - 1]),
            "{}: the numbers of parts must rise from 0 on, but value {} is {}", name, i,
            curve.kept[i]);
    require(std::isfinite(curve.effect[i]), "{}: the effect of {} parts is {}", name, curve.kept[i],
            curve.effect[i]);
    require(curve.error.empty() || (std::isfinite(curve.error[i]) && curve.error[i] >= 0),
            "{}: the error at {} parts is {}", name, curve.kept[i],
            curve.error.empty() ? 0.0 : curve.error[i]);
  }
  require(!curve.size ||
              std::find(curve.kept.begin(), curve.kept.end(), *curve.size) != curve.kept.end(),
          "{}: its size {} is not a point of the curve", name, curve.size.value_or(0));
  require(curve.kept.back() > 0, "{} has no point with a part kept", name);
}

// Where 0 stands on the log axis: well left of the smallest number of parts of all curves.
double place_of_zero(const EffectChart& chart) {
  double least = chart.curves[0].kept.back();
  for (const EffectCurve& curve : chart.curves)
    for (const double kept : curve.kept)
      if (kept > 0) least = std::min(least, kept);
  return least / kZeroGap;
}

Curve line_of(const EffectCurve& input, std::size_t category, double zero) {
  Curve line = {.label = input.name, .category = category};
  for (std::size_t i = 0; i < input.kept.size(); ++i) {
    const auto cut = [](double value) { return std::clamp(value, kLeastEffect, kMostEffect); };
    line.x.push_back(input.kept[i] > 0 ? input.kept[i] : zero);
    line.y.push_back(cut(input.effect[i]));
    if (input.error.empty()) continue;
    line.low.push_back(cut(input.effect[i] - input.error[i]));
    line.high.push_back(cut(input.effect[i] + input.error[i]));
  }
  return line;
}

// The point at a curve's size, with the count and how it compares with the first model's.
PointMark mark_of(const EffectChart& chart, std::size_t index, bool with_unit) {
  const EffectCurve& curve = chart.curves[index];
  const auto place = static_cast<std::size_t>(
      std::find(curve.kept.begin(), curve.kept.end(), *curve.size) - curve.kept.begin());
  const auto count = static_cast<std::uint64_t>(std::llround(*curve.size));
  std::string label = with_thousands(count);
  if (with_unit) {
    label += " " + chart.unit;
    if (count == 1 && label.ends_with('s')) label.pop_back();
  }
  const std::optional<double>& reference = chart.curves[0].size;
  if (index > 0 && reference && *reference > 0) label += ": " + size_ratio(*reference, *curve.size);
  return {.x = *curve.size,
          .y = std::clamp(curve.effect[place], kLeastEffect, kMostEffect),
          .label = label,
          .curve = index,
          .drop_line = true,
          .colored = true};
}

// The effect with no part kept; said in numbers where it is so large that it changes the story.
PointMark empty_mark(const EffectCurve& curve, std::size_t index, double zero) {
  constexpr double kWorthSaying = 0.1;
  const double effect = curve.effect[0];
  return {.x = zero,
          .y = std::clamp(effect, kLeastEffect, kMostEffect),
          .label = effect >= kWorthSaying ? fmt::format("{:.0f} %", 100 * effect) : "",
          .curve = index,
          .drop_line = false,
          .colored = true};
}

// `first` has the name of the y axis; `alone` has room for the unit in its notes.
LineChart chart_of(const EffectChart& input, double level, bool first, bool alone) {
  LineChart chart;
  double low = 0, high = 1.05;
  for (const EffectCurve& curve : input.curves) check_curve(curve, input.unit);
  const double zero = place_of_zero(input);
  for (std::size_t c = 0; c < input.curves.size(); ++c) {
    const EffectCurve& curve = input.curves[c];
    Curve line = line_of(curve, c, zero);
    for (const std::vector<double>* values : {&line.y, &line.low, &line.high})
      for (const double value : *values)
        low = std::min(low, value - 0.02), high = std::max(high, value + 0.02);
    chart.curves.push_back(std::move(line));
    // What is there with none kept is a point of its own; a circuit of nothing is no more than it.
    if (curve.kept[0] == 0) chart.points.push_back(empty_mark(curve, c, zero));
    if (curve.size && *curve.size > 0) chart.points.push_back(mark_of(input, c, alone));
  }
  const bool from_zero = std::any_of(input.curves.begin(), input.curves.end(),
                                     [](const EffectCurve& curve) { return curve.kept[0] == 0; });
  chart.x_axis = {
      .label = input.unit + " kept", .scale = AxisScale::kLog, .zero_at = from_zero ? zero : 0};
  chart.y_axis = {.label = first ? "explained effect" : "",
                  .format = NumberFormat::kPercent,
                  .low = low,
                  .high = high};
  chart.marks = {{level, fmt::format("{:g} %", 100 * level)}};
  check_chart(chart, "circuit curves");
  return chart;
}

}  // namespace

std::string size_ratio(double reference, double size) {
  if (size == reference) return "as many";
  const bool fewer = size < reference;
  const double ratio = fewer ? reference / size : size / reference;
  const std::string digits =
      ratio < 9.95 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
  return fmt::format("{} × {}", digits, fewer ? "fewer" : "more");
}

Figure make_figure(const CircuitCurves& input, const Theme& theme) {
  require(!input.charts.empty(), "circuit curves: there is no chart to draw");
  std::vector<LineChart> charts;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < input.charts.size(); ++i) {
    require(!input.charts[i].curves.empty(), "circuit curves: the chart of {} has no curve",
            printable(input.charts[i].unit));
    charts.push_back(chart_of(input.charts[i], input.level, i == 0, input.charts.size() == 1));
    // All charts show the same models; the longest list of them is the legend.
    for (std::size_t c = legend.size(); c < input.charts[i].curves.size(); ++c)
      legend.push_back({input.charts[i].curves[c].name, theme.category(c), true});
  }
  const double width = charts.size() == 1   ? kColumnWidth
                       : charts.size() == 2 ? kEffectPageWidth
                                            : static_cast<double>(charts.size()) * kChartWidth;
  const double top = legend_height(legend, width - 40, theme) + 5;
  double bottom = 0;
  for (const LineChart& chart : charts)
    bottom = std::max(bottom, chart_bottom_margin(chart, theme));
  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const double height = top + kEffectChartHeight + bottom;
  return make_page(parts, {width, height}, theme, [=](Canvas& canvas, const Rect& body) {
    const auto count = static_cast<double>(charts.size());
    const double share = (body.width - (count - 1) * kEffectChartGap) / count;
    for (std::size_t i = 0; i < charts.size(); ++i) {
      const double corner = body.x + static_cast<double>(i) * (share + kEffectChartGap);
      const double left = chart_left_margin(charts[i], kEffectChartHeight, theme);
      const Rect area = {corner + left, body.y + top, share - left - 6, kEffectChartHeight};
      if (i == 0) draw_legend(canvas, {area.x, body.y}, body.right() - area.x, legend, theme);
      draw_line_chart(canvas, area, charts[i], theme);
    }
  });
}

}  // namespace filigree::figure

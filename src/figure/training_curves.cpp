#include <fmt/format.h>

#include <algorithm>

#include "figure/line_chart.h"
#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kTrainingWidth = 340;
constexpr double kTrainingChartHeight = 84;
constexpr double kTrainingChartGap = 10;
constexpr double kTrainingRightMargin = 8;  // room for half of the last tick's label

// One quantity of all runs, without the values that a log axis cannot show.
LineChart chart_of(const TrainingCurves& input, std::vector<double> TrainingRun::*quantity,
                   const AxisSpec& y_axis) {
  LineChart chart = {.x_axis = {.label = "step"}, .y_axis = y_axis};
  // All charts share the x axis, whatever each of them has to show.
  double first = 1e300, last = -1e300;
  for (const TrainingRun& run : input.runs) {
    for (const double step : run.steps) {
      first = std::min(first, step);
      last = std::max(last, step);
    }
  }
  chart.x_axis.low = first;
  chart.x_axis.high = last;
  for (std::size_t r = 0; r < input.runs.size(); ++r) {
    const TrainingRun& run = input.runs[r];
    const std::vector<double>& values = run.*quantity;
    if (values.empty()) continue;
    require(values.size() == run.steps.size(),
            "training curves: run '{}' has {} steps, but {} values of '{}'", printable(run.name),
            run.steps.size(), values.size(), y_axis.label);
    Curve curve = {.label = run.name, .category = r};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (y_axis.scale == AxisScale::kLog && values[i] <= 0) continue;
      curve.x.push_back(run.steps[i]);
      curve.y.push_back(values[i]);
    }
    chart.curves.push_back(std::move(curve));
  }
  return chart;
}

// Puts a run's marks on its curve, where it has one in this chart and none above it had.
void add_marks(const TrainingCurves& input, LineChart& chart, std::vector<bool>& marked) {
  for (std::size_t c = 0; c < chart.curves.size(); ++c) {
    const Curve& curve = chart.curves[c];
    const std::size_t r = *curve.category;
    if (marked[r] || curve.x.empty()) continue;
    marked[r] = true;
    for (const auto& [step, word] : input.runs[r].marks) {
      const auto after = std::upper_bound(curve.x.begin(), curve.x.end(), step);
      const auto place = static_cast<std::size_t>(after - curve.x.begin());
      const std::size_t at = place == 0 ? 0 : place - 1;
      chart.points.push_back({.x = curve.x[at],
                              .y = curve.y[at],
                              .label = word,
                              .curve = c,
                              .drop_line = true,
                              .colored = true});
    }
  }
}

// A loss that ran away has no place beside one that fell, unless powers of ten are steps.
AxisSpec loss_axis(const TrainingCurves& input) {
  double least = 1e300, most = 0;
  for (const TrainingRun& run : input.runs)
    for (const double loss : run.loss) least = std::min(least, loss), most = std::max(most, loss);
  return {.label = "loss (nats)",
          .scale = least > 0 && most > 20 * least ? AxisScale::kLog : AxisScale::kLinear};
}

}  // namespace

Figure make_figure(const TrainingCurves& input, const Theme& theme) {
  std::vector<LineChart> charts;
  LineChart loss = chart_of(input, &TrainingRun::loss, loss_axis(input));
  LineChart gap =
      chart_of(input, &TrainingRun::loss_gap, {.label = "loss gap (nats)", .include = {0}});
  if (input.margin) gap.marks.push_back({*input.margin, "margin"});
  LineChart accuracy =
      chart_of(input, &TrainingRun::accuracy,
               {.label = "accuracy", .format = NumberFormat::kPercent, .include = {0, 1}});
  LineChart edges = chart_of(
      input, &TrainingRun::active_edges,
      {.label = "active edges", .scale = AxisScale::kLog, .format = NumberFormat::kPercent});
  LineChart multiplier = chart_of(input, &TrainingRun::multiplier,
                                  {.label = "multiplier λ", .scale = AxisScale::kLog});
  std::vector<bool> marked(input.runs.size());
  for (LineChart* chart : {&loss, &accuracy, &gap, &edges, &multiplier}) {
    if (chart->curves.empty()) continue;
    add_marks(input, *chart, marked);
    check_chart(*chart, "training curves");
    charts.push_back(std::move(*chart));
  }
  require(!charts.empty(),
          "training curves: no run has a loss, a loss gap, active edges or a multiplier");

  std::vector<LegendEntry> legend;
  for (std::size_t r = 0; r < input.runs.size(); ++r)
    if (!input.runs[r].name.empty())
      legend.push_back({input.runs[r].name, theme.category(r), true});
  double left = 0;
  for (const LineChart& chart : charts)
    left = std::max(left, chart_left_margin(chart, kTrainingChartHeight, theme));
  const double chart_width =
      kTrainingWidth - left - kTrainingRightMargin;  // the legend has no more room either
  const double top = legend.empty() ? 4 : legend_height(legend, chart_width, theme) + 5;
  const auto count = static_cast<double>(charts.size());
  const double bottom = chart_bottom_margin(charts.back(), theme);
  const double height =
      top + count * kTrainingChartHeight + (count - 1) * kTrainingChartGap + bottom;

  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  return make_page(parts, {kTrainingWidth, height}, theme, [=](Canvas& canvas, const Rect& body) {
    Rect area = {body.x + left, body.y + top, chart_width, kTrainingChartHeight};
    draw_legend(canvas, {area.x, body.y}, area.width, legend, theme);
    for (std::size_t i = 0; i < charts.size(); ++i) {
      draw_line_chart(canvas, area, charts[i], theme, i + 1 < charts.size(), left);
      area.y += kTrainingChartHeight + kTrainingChartGap;
    }
  });
}

}  // namespace filigree::figure

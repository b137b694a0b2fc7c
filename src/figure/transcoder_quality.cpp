#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "figure/line_chart.h"
#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kQualityWidth = 516;
constexpr double kColumns = 3;
constexpr double kQualityChartHeight = 104;
constexpr double kQualityGap = 12;
constexpr double kQualityRightMargin = 6;  // room for half of the last tick's label
constexpr double kLeastRecovered = -0.25, kMostRecovered = 1.25;

using Quantity = std::vector<double> MeasuredTranscoder::*;

void check_transcoder(const MeasuredTranscoder& transcoder) {
  const std::string name = fmt::format("transcoder quality: '{}'", printable(transcoder.name));
  const std::size_t layers = transcoder.nmse.size();
  require(layers > 0, "{} has no layers", name);
  for (const Quantity quantity :
       {&MeasuredTranscoder::active, &MeasuredTranscoder::dead, &MeasuredTranscoder::dense})
    require((transcoder.*quantity).size() == layers, "{} has {} layers, but {} values of a layer's",
            name, layers, (transcoder.*quantity).size());
  require(transcoder.recovered.empty() || transcoder.recovered.size() == layers,
          "{} has {} layers, but a recovery of {}", name, layers, transcoder.recovered.size());
  require(!transcoder.density.empty(), "{} has no densities", name);
}

// A chart over layers, without curves.
LineChart layer_chart(const TranscoderQuality& input, const AxisSpec& y_axis) {
  std::size_t layers = 0;
  for (const MeasuredTranscoder& transcoder : input.transcoders)
    layers = std::max(layers, transcoder.nmse.size());
  return {.x_axis = {.label = "layer",
                     .low = -0.4,
                     .high = static_cast<double>(layers) - 0.6,
                     .whole = true},
          .y_axis = y_axis};
}

void add_curves(const TranscoderQuality& input, Quantity quantity, bool dashed, LineChart& chart) {
  for (std::size_t t = 0; t < input.transcoders.size(); ++t) {
    const std::vector<double>& values = input.transcoders[t].*quantity;
    if (values.empty()) continue;
    Curve curve = {.label = input.transcoders[t].name,
                   .y = values,
                   .category = t,
                   .dashed = dashed,
                   .markers = !dashed};
    curve.x.resize(values.size());
    std::iota(curve.x.begin(), curve.x.end(), 0.0);
    chart.curves.push_back(std::move(curve));
  }
}

AxisSpec from_zero(const char* label, NumberFormat format = NumberFormat::kPlain) {
  return {.label = label, .format = format, .include = {0}, .ends_on_ticks = true};
}

LineChart one_quantity(const TranscoderQuality& input, Quantity quantity, const char* label) {
  LineChart chart = layer_chart(input, from_zero(label));
  add_curves(input, quantity, false, chart);
  return chart;
}

LineChart dead_and_dense(const TranscoderQuality& input) {
  LineChart chart = layer_chart(input, from_zero("dead, dense (dashed)", NumberFormat::kPercent));
  add_curves(input, &MeasuredTranscoder::dead, false, chart);
  add_curves(input, &MeasuredTranscoder::dense, true, chart);
  return chart;
}

LineChart recovery(const TranscoderQuality& input) {
  LineChart chart = layer_chart(input, {.label = "recovered, it alone replaced",
                                        .format = NumberFormat::kPercent,
                                        .include = {1},
                                        .ends_on_ticks = true});
  add_curves(input, &MeasuredTranscoder::recovered, false, chart);
  for (Curve& curve : chart.curves) {
    Curve shown = curve;
    shown.x.clear(), shown.y.clear();
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      // A layer that the loss does not need has nothing to recover.
      if (!std::isfinite(curve.y[i])) continue;
      shown.x.push_back(curve.x[i]);
      shown.y.push_back(std::clamp(curve.y[i], kLeastRecovered, kMostRecovered));
    }
    curve = std::move(shown);
  }
  return chart;
}

// Outlines of histograms, tinted, from the lowest bin that any of them has.
LineChart densities(const TranscoderQuality& input) {
  LineChart chart = {
      .x_axis = {.label = "share of tokens at which a feature is active", .scale = AxisScale::kLog},
      .y_axis = from_zero("features", NumberFormat::kPercent)};
  std::size_t most = 0;  // bins that are not empty, from the last one on
  for (const MeasuredTranscoder& transcoder : input.transcoders)
    for (std::size_t bin = 0; bin < transcoder.density.size(); ++bin)
      if (transcoder.density[bin] > 0) most = std::max(most, transcoder.density.size() - bin);
  const auto edge = [&](std::size_t bins_left) {
    return std::pow(10.0, -static_cast<double>(bins_left) / input.density_steps);
  };
  chart.x_axis.low = edge(std::max<std::size_t>(most, 1)), chart.x_axis.high = 1.0;
  for (std::size_t t = 0; t < input.transcoders.size(); ++t) {
    const std::vector<std::int64_t>& counts = input.transcoders[t].density;
    const auto all =
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    Curve curve = {.label = input.transcoders[t].name, .category = t, .steps = true};
    const auto add = [&](double x, double y) {
      curve.x.push_back(x), curve.y.push_back(y);
      curve.low.push_back(0), curve.high.push_back(y);
    };
    add(chart.x_axis.low, 0);
    for (std::size_t bin = counts.size() - std::min(counts.size(), most); bin < counts.size();
         ++bin)
      add(edge(counts.size() - bin), all > 0 ? static_cast<double>(counts[bin]) / all : 0);
    add(1, 0);
    chart.curves.push_back(std::move(curve));
  }
  return chart;
}

// A chart and how many columns of the page it takes.
struct Placed {
  LineChart chart;
  double row = 0, column = 0, columns = 1;
};

std::vector<Placed> placed_charts(const TranscoderQuality& input) {
  std::vector<Placed> all = {
      {one_quantity(input, &MeasuredTranscoder::nmse, "NMSE"), 0, 0},
      {one_quantity(input, &MeasuredTranscoder::active, "active features"), 0, 1},
      {dead_and_dense(input), 0, 2}};
  LineChart recovered = recovery(input);
  const bool measured = !recovered.curves.empty();
  if (measured) all.push_back({std::move(recovered), 1, 0});
  all.push_back({densities(input), 1, measured ? 1.0 : 0.0, measured ? 2.0 : 3.0});
  for (const Placed& placed : all) check_chart(placed.chart, "transcoder quality");
  return all;
}

}  // namespace

Figure make_figure(const TranscoderQuality& input, const Theme& theme) {
  require(!input.transcoders.empty(), "transcoder quality: there is no transcoder");
  require(input.density_steps > 0, "transcoder quality: {} bins of a power of ten",
          input.density_steps);
  std::vector<LegendEntry> legend;
  for (std::size_t t = 0; t < input.transcoders.size(); ++t) {
    check_transcoder(input.transcoders[t]);
    if (!input.transcoders[t].name.empty())
      legend.push_back({input.transcoders[t].name, theme.category(t), true});
  }
  const std::vector<Placed> charts = placed_charts(input);
  // Charts of a column begin at the same place.
  std::vector<double> left(static_cast<std::size_t>(kColumns), 0);
  for (const Placed& placed : charts) {
    double& margin = left[static_cast<std::size_t>(placed.column)];
    margin = std::max(margin, chart_left_margin(placed.chart, kQualityChartHeight, theme));
  }
  const double top = legend.empty() ? 4 : legend_height(legend, kQualityWidth - left[0], theme) + 5;
  const double bottom = chart_bottom_margin(charts[0].chart, theme);
  const double height = top + 2 * (kQualityChartHeight + bottom) + kQualityGap;
  const PageParts parts = {.title = input.title, .captions = input.captions, .caption_lines = 3};
  return make_page(parts, {kQualityWidth, height}, theme, [=](Canvas& canvas, const Rect& body) {
    draw_legend(canvas, {body.x + left[0], body.y}, kQualityWidth - left[0], legend, theme);
    const double column = (kQualityWidth - (kColumns - 1) * kQualityGap) / kColumns;
    for (const Placed& placed : charts) {
      const double margin = left[static_cast<std::size_t>(placed.column)];
      const Rect area = {
          body.x + placed.column * (column + kQualityGap) + margin,
          body.y + top + placed.row * (kQualityChartHeight + bottom + kQualityGap),
          placed.columns * (column + kQualityGap) - kQualityGap - margin - kQualityRightMargin,
          kQualityChartHeight};
      draw_line_chart(canvas, area, placed.chart, theme, false, margin);
    }
  });
}

}  // namespace filigree::figure

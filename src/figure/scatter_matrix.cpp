#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kFullWidth = 516;
constexpr double kLargestCell = 84;
constexpr double kCellGap = 3;
constexpr double kPanelGap = 10;
constexpr double kTickRoom = 12;
constexpr std::size_t kBins = 40;

// What one plot shows: the points, or how many lie in each bin, as levels.
struct Plot {
  std::vector<Point> points = {};  // in [0, 1] x [0, 1], y upwards
  LevelMap density = {};
};

struct Panel {
  std::string title;
  std::vector<std::string> names;
  std::vector<std::vector<double>> histograms;  // log-scaled, in [0, 1]
  std::vector<Plot> plots;                      // row-major, below the diagonal only
  std::vector<float> pearson, spearman;

  std::size_t count() const { return names.size(); }
};

double place_of(float weight, double end) {
  return std::clamp(static_cast<double>(weight) / end, 0.0, 1.0);
}

std::size_t bin_of(double place) {
  return std::min(kBins - 1, static_cast<std::size_t>(place * static_cast<double>(kBins)));
}

Plot make_plot(const ScatterHead& x, const ScatterHead& y, double end) {
  Plot plot;
  if (x.weights.size() <= kMostDots) {
    for (std::size_t i = 0; i < x.weights.size(); ++i)
      plot.points.push_back({place_of(x.weights[i], end), place_of(y.weights[i], end)});
    return plot;
  }
  std::vector<std::size_t> counts(kBins * kBins);
  for (std::size_t i = 0; i < x.weights.size(); ++i) {
    const std::size_t row = kBins - 1 - bin_of(place_of(y.weights[i], end));
    ++counts[row * kBins + bin_of(place_of(x.weights[i], end))];
  }
  const double most =
      std::log1p(static_cast<double>(*std::max_element(counts.begin(), counts.end())));
  plot.density = {kBins, kBins, std::vector<std::uint8_t>(counts.size())};
  std::transform(counts.begin(), counts.end(), plot.density.levels.begin(), [&](std::size_t count) {
    // A single point must be seen: the density starts at a fifth of the scale.
    return count == 0 ? std::uint8_t{0}
                      : level_of(0.2 + 0.8 * std::log1p(static_cast<double>(count)) / most, {});
  });
  return plot;
}

std::vector<double> make_histogram(const ScatterHead& head, double end) {
  constexpr std::size_t kBars = 16;
  std::vector<double> bars(kBars);
  for (const float weight : head.weights)
    ++bars[std::min(kBars - 1, static_cast<std::size_t>(place_of(weight, end) * kBars))];
  const double most = std::log1p(*std::max_element(bars.begin(), bars.end()));
  for (double& bar : bars) bar = most > 0 ? std::log1p(bar) / most : 0;
  return bars;
}

Panel make_panel(const ScatterPanel& input, double end) {
  const std::size_t count = input.heads.size();
  const std::string what = fmt::format("scatter matrix: panel '{}'", printable(input.title));
  require(count >= 2, "{} has {} heads; pairs need at least 2", what, count);
  require(count <= 24, "{} has {} heads; choose at most 24, the correlation map shows more", what,
          count);
  require(input.pearson.size() == count * count &&
              (input.spearman.empty() || input.spearman.size() == count * count),
          "{}: {} heads need {} correlations, but there are {} (Pearson) and {} (Spearman)", what,
          count, count * count, input.pearson.size(), input.spearman.size());
  Panel panel = {.title = input.title,
                 .names = {},
                 .histograms = {},
                 .plots = {},
                 .pearson = input.pearson,
                 .spearman = input.spearman};
  for (const ScatterHead& head : input.heads) {
    require(head.weights.size() == input.heads[0].weights.size() && !head.weights.empty(),
            "{}: head {} has {} weights, head {} has {}; every head needs the same, at least 1",
            what, printable(head.name), head.weights.size(), printable(input.heads[0].name),
            input.heads[0].weights.size());
    for (std::size_t i = 0; i < head.weights.size(); ++i)
      if (!std::isfinite(head.weights[i]))
        fail("{}: head {}: weight {} is {}; figures need finite numbers", what,
             printable(head.name), i, head.weights[i]);
    panel.names.push_back(head.name);
    panel.histograms.push_back(make_histogram(head, end));
  }
  panel.plots.resize(count * count);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t column = 0; column < row; ++column)
      panel.plots[row * count + column] = make_plot(input.heads[column], input.heads[row], end);
  return panel;
}

// From a tint of the model's colour to nearly that of text.
LevelColors density_colors(const Color& color, const Theme& theme) {
  const ColorRamp ramp({mix(theme.empty, color, 0.2), color, mix(color, theme.text, 0.7)});
  LevelColors colors;
  colors[0] = theme.empty;
  for (std::size_t level = 1; level < colors.size(); ++level)
    colors[level] = ramp.at(static_cast<double>(level - 1) / 254);
  return colors;
}

void draw_plot(Canvas& canvas, const Rect& cell, const Plot& plot, const Color& color,
               const Theme& theme) {
  if (plot.points.empty()) {
    canvas.heatmap(cell, plot.density, ScaleKind::kMagnitude, density_colors(color, theme));
  } else {
    canvas.fill(cell, theme.plot);
    const Rect inside = cell.inset(1.2);
    std::vector<Point> centers;
    for (const Point& point : plot.points)
      centers.push_back(
          {inside.x + point.x * inside.width, inside.bottom() - point.y * inside.height});
    canvas.dots(centers, 0.9, color.with_alpha(0.55));
  }
  canvas.frame(cell, {theme.frame, theme.hair_width});
}

void draw_correlation(Canvas& canvas, const Rect& cell, const Panel& panel, std::size_t index,
                      const Theme& theme) {
  const ColorScale scale = {ScaleKind::kDifference, 1};
  const double pearson = panel.pearson[index];
  const Color behind = level_colors(scale, theme)[level_of(pearson, scale)];
  canvas.fill(cell, behind);
  canvas.frame(cell, {theme.frame, theme.hair_width});
  const auto number = [](const char* name, double value) {
    return std::isnan(value)
               ? std::string(name) + " —"
               : fmt::format("{} {}{:.2f}", name, value < 0 ? "\u2212" : "", std::abs(value));
  };
  TextStyle style = {.size = std::clamp(cell.width * 0.17, 3.6, theme.text_size + 1),
                     .color = more_contrast(theme.text, theme.page, behind),
                     .align = Align::kCenter,
                     .vertical = VerticalAlign::kMiddle};
  Point middle = cell.center();
  const bool both = !panel.spearman.empty();
  if (both) middle.y -= line_height(style.size) * 0.5;
  canvas.text(middle, number("r", pearson), style);
  if (!both) return;
  middle.y += line_height(style.size);
  canvas.text(middle, number("ρ", panel.spearman[index]), style);
}

void draw_diagonal(Canvas& canvas, const Rect& cell, const Panel& panel, std::size_t head,
                   const Color& color, const Theme& theme) {
  canvas.fill(cell, theme.plot);
  const TextStyle name = {.size = std::clamp(cell.width * 0.17, 3.6, theme.text_size + 1),
                          .color = theme.text,
                          .bold = true,
                          .align = Align::kCenter,
                          .vertical = VerticalAlign::kTop,
                          .max_width = cell.width - 2};
  const std::vector<double>& bars = panel.histograms[head];
  const double top = cell.y + line_height(name.size) + 1;
  const double width = cell.width / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double height = bars[i] * (cell.bottom() - top);
    canvas.fill({cell.x + static_cast<double>(i) * width, cell.bottom() - height, width, height},
                mix(theme.plot, color, 0.55));
  }
  // Heights are logarithms; where there is room every histogram says so.
  if (cell.width >= 28)
    canvas.text({cell.right() - 1.5, top + 0.5}, "log",
                {.size = std::min(theme.small_size, cell.width * 0.12),
                 .color = theme.muted,
                 .italic = true,
                 .align = Align::kRight,
                 .vertical = VerticalAlign::kTop});
  canvas.frame(cell, {theme.frame, theme.hair_width});
  canvas.text({cell.center().x, cell.y + 0.5}, panel.names[head], name);
}

void draw_scatter_panel(Canvas& canvas, const Rect& rect, const Panel& panel, double side,
                        double axis_end, const Color& color, const Theme& theme) {
  draw_panel(canvas, rect, panel.title, theme);
  const double pitch = side + kCellGap;
  const double left = rect.x + kPanelPadding + kTickRoom;
  const double top = rect.y + kPanelTitleHeight + kPanelPadding / 2;
  const TextStyle tick = {.size = std::min(theme.small_size, side * 0.15), .color = theme.muted};
  const std::array<std::string, 2> ends = {"0", format_number(axis_end, 1)};
  for (std::size_t row = 0; row < panel.count(); ++row) {
    for (std::size_t column = 0; column < panel.count(); ++column) {
      const Rect cell = canvas.snapped({left + static_cast<double>(column) * pitch,
                                        top + static_cast<double>(row) * pitch, side, side});
      const std::size_t index = row * panel.count() + column;
      if (row == column)
        draw_diagonal(canvas, cell, panel, row, color, theme);
      else if (column < row)
        draw_plot(canvas, cell, panel.plots[index], color, theme);
      else
        draw_correlation(canvas, cell, panel, index, theme);
      // The ends of the axes, once a row and once a column; 0 once at all: elsewhere it would touch
      // the neighbour's end.
      if (column == 0 && row > 0) {
        TextStyle style = tick;
        style.align = Align::kRight;
        if (row + 1 == panel.count()) canvas.text({cell.x - 2.5, cell.bottom()}, ends[0], style);
        canvas.text({cell.x - 2.5, cell.y + cap_height(tick.size)}, ends[1], style);
      }
      if (row + 1 == panel.count()) {
        TextStyle style = tick;
        style.vertical = VerticalAlign::kTop;
        if (column == 0) canvas.text({cell.x, cell.bottom() + 1}, ends[0], style);
        style.align = Align::kRight;
        canvas.text({cell.right(), cell.bottom() + 1}, ends[1], style);
      }
    }
  }
}

}  // namespace

Figure make_figure(const ScatterMatrix& input, const Theme& theme) {
  require(!input.panels.empty(), "scatter matrix: there is no panel; give at least one model");
  require(std::isfinite(input.axis_end) && input.axis_end > 0,
          "scatter matrix: the axes end at {}, but must end above 0", input.axis_end);
  const auto panels = std::make_shared<std::vector<Panel>>();
  std::size_t most = 0;
  for (const ScatterPanel& panel : input.panels) {
    panels->push_back(make_panel(panel, input.axis_end));
    most = std::max(most, panels->back().count());
  }
  // Two panels stand beside each other while their numbers stay readable.
  const std::size_t beside = panels->size() > 1 && most <= 7 ? 2 : 1;
  const double frame = 2 * kPanelPadding + kTickRoom;
  const double room =
      (kFullWidth - static_cast<double>(beside - 1) * kPanelGap) / static_cast<double>(beside);
  const auto cells = static_cast<double>(most);
  const double side = std::min(kLargestCell, (room - frame + kCellGap) / cells - kCellGap);
  const auto extent = [=](double count) { return count * (side + kCellGap) - kCellGap; };
  const double panel_width = extent(cells) + frame;
  std::vector<Rect> places;
  double y = 0, row_height = 0;
  for (std::size_t p = 0; p < panels->size(); ++p) {
    const double height = kPanelTitleHeight + kPanelPadding * 1.2 + kTickRoom * 0.8 +
                          extent(static_cast<double>((*panels)[p].count()));
    if (p > 0 && p % beside == 0) {
      y += row_height + kPanelGap;
      row_height = 0;
    }
    row_height = std::max(row_height, height);
    places.push_back(
        {static_cast<double>(p % beside) * (panel_width + kPanelGap), y, panel_width, height});
  }
  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const double width =
      static_cast<double>(beside) * panel_width + static_cast<double>(beside - 1) * kPanelGap;
  const double axis_end = input.axis_end;
  return make_page(parts, {width, y + row_height}, theme, [=](Canvas& canvas, const Rect& body) {
    for (std::size_t p = 0; p < panels->size(); ++p) {
      Rect rect = places[p];
      rect.x += body.x;
      rect.y += body.y;
      draw_scatter_panel(canvas, rect, (*panels)[p], side, axis_end, theme.category(p), theme);
    }
  });
}

}  // namespace filigree::figure

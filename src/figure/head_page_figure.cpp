#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "figure/page.h"
#include "figure/token_labels.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {
namespace {

constexpr double kHeadPageWidth = 516;
constexpr double kHeadPageGap = 14;
constexpr double kHeading = 14;
constexpr double kListWidth = 150;  // beside the maps
constexpr double kBarsWidth = 232;
constexpr double kBarHeight = 4.2, kBarGap = 2.6;
constexpr double kMostSide = 168;
constexpr double kListGap = 6;

void check(const HeadPage& input) {
  const std::string what = fmt::format("head page '{}'", printable(input.title));
  const std::size_t cells = input.tokens.size() * input.tokens.size();
  require(!input.tokens.empty(), "{}: there are no tokens", what);
  require(!input.maps.empty() && input.maps.size() <= 2, "{}: {} maps; one or two are drawn", what,
          input.maps.size());
  for (const HeadPageMap& map : input.maps)
    require(map.weights.size() == cells, "{}: {} tokens need maps of {} values, not {}", what,
            input.tokens.size(), cells, map.weights.size());
  for (const HeadPageBar& bar : input.bars) {
    require(bar.values.size() == input.maps.size() && bar.errors.size() == bar.values.size(),
            "{}: '{}' has {} values and {} errors for {} maps", what, printable(bar.name),
            bar.values.size(), bar.errors.size(), input.maps.size());
    for (const double value : bar.values)
      require(std::isfinite(value), "{}: '{}' has a value that is not finite", what,
              printable(bar.name));
  }
  for (const HeadPageList& list : input.lists)
    require(list.left.size() == list.right.size(), "{}: '{}' has columns of {} and {} rows", what,
            printable(list.heading), list.left.size(), list.right.size());
}

TextStyle heading_style(const Theme& theme, double width) {
  return {.size = theme.text_size + 0.5,
          .color = theme.text,
          .bold = true,
          .vertical = VerticalAlign::kTop,
          .max_width = width};
}

double row_height(const Theme& theme) { return line_height(theme.text_size) + 1.2; }

double list_height(const HeadPageList& list, const Theme& theme) {
  return kHeading + static_cast<double>(list.left.size()) * row_height(theme);
}

void draw_list(Canvas& canvas, Point corner, double width, const HeadPageList& list,
               const Theme& theme) {
  canvas.text(corner, list.heading, heading_style(theme, width));
  double left = 0, right = 0;
  for (const std::string& text : list.left)
    left = std::max(left, text_size(text, {.size = theme.text_size}).width);
  for (const std::string& text : list.right)
    right = std::max(right, text_size(text, {.size = theme.text_size}).width);
  right = std::min(right, std::max(width * 0.6, width - left - 4));
  double y = corner.y + kHeading;
  for (std::size_t i = 0; i < list.left.size(); ++i, y += row_height(theme)) {
    canvas.text({corner.x, y}, list.left[i],
                {.size = theme.text_size,
                 .color = theme.text,
                 .vertical = VerticalAlign::kTop,
                 .max_width = width - right - 4});
    canvas.text({corner.x + width, y}, list.right[i],
                {.size = theme.text_size,
                 .color = theme.muted,
                 .align = Align::kRight,
                 .vertical = VerticalAlign::kTop,
                 .max_width = right});
  }
}

double bar_row(std::size_t models) {
  return static_cast<double>(models) * kBarHeight + kBarGap + 2.4;
}

void draw_bars(Canvas& canvas, const Rect& area, const HeadPage& input, const Theme& theme) {
  canvas.text({area.x, area.y}, input.bars_heading, heading_style(theme, area.width));
  double names = 0;
  for (const HeadPageBar& bar : input.bars)
    names = std::max(names, text_size(bar.name, {.size = theme.text_size}).width);
  names = std::min(names, area.width * 0.3) + 5;
  std::vector<double> ends = {0.0};
  for (const HeadPageBar& bar : input.bars)
    for (std::size_t m = 0; m < bar.values.size(); ++m)
      for (const double sign : {-1.0, 1.0}) ends.push_back(bar.values[m] + sign * bar.errors[m]);
  const Axis axis({.format = NumberFormat::kPercent, .ends_on_ticks = true}, ends, 5);
  const double numbers = text_size("−00.0 %", {.size = theme.small_size}).width + 3;
  const Rect plot = {area.x + names, area.y + kHeading, area.width - names - numbers,
                     static_cast<double>(input.bars.size()) * bar_row(input.maps.size())};
  const auto x_of = [&](double value) { return plot.x + axis.position(value) * plot.width; };
  canvas.fill(plot, theme.plot);
  for (const Tick& tick : axis.ticks()) {
    const double x = x_of(tick.value);
    canvas.line({x, plot.y}, {x, plot.bottom()}, {theme.grid, theme.hair_width});
    canvas.text({x, plot.bottom() + 2}, tick.label,
                {.size = theme.small_size,
                 .color = theme.muted,
                 .align = Align::kCenter,
                 .vertical = VerticalAlign::kTop});
  }
  double y = plot.y + kBarGap / 2 + 1.2;
  for (const HeadPageBar& bar : input.bars) {
    const double middle = y + static_cast<double>(bar.values.size()) * kBarHeight / 2;
    canvas.text({plot.x - 4, middle}, bar.name,
                {.size = theme.text_size,
                 .color = bar.muted ? theme.muted : theme.text,
                 .italic = bar.muted,
                 .align = Align::kRight,
                 .vertical = VerticalAlign::kMiddle,
                 .max_width = names - 5});
    for (std::size_t m = 0; m < bar.values.size(); ++m, y += kBarHeight) {
      const double zero = x_of(0), x = x_of(bar.values[m]), center = y + kBarHeight / 2;
      canvas.fill({std::min(zero, x), y + 0.4, std::abs(x - zero), kBarHeight - 0.8},
                  theme.category(input.maps[m].color));
      const double low = x_of(bar.values[m] - bar.errors[m]),
                   high = x_of(bar.values[m] + bar.errors[m]);
      if (bar.errors[m] > 0) canvas.line({low, center}, {high, center}, {theme.text, 0.7});
    }
    const double first = bar.values[0];
    canvas.text({area.right(), middle},
                bar.muted ? std::string("\u2013")
                          : fmt::format("{}{:.1f} %", first < -0.0005 ? "\u2212" : "",
                                        100 * std::abs(first)),
                {.size = theme.small_size,
                 .color = bar.muted ? theme.muted : theme.text,
                 .align = Align::kRight,
                 .vertical = VerticalAlign::kMiddle});
    y += kBarGap + 2.4;
  }
  canvas.line({x_of(0), plot.y}, {x_of(0), plot.bottom()}, {theme.muted, theme.hair_width});
}

struct HeadPagePreparedMap {
  std::string name;
  LevelMap map;
  std::size_t color;
};

}  // namespace

Figure make_figure(const HeadPage& input, const Theme& theme) {
  check(input);
  const std::size_t tokens = input.tokens.size(), count = input.maps.size();
  const auto maps = std::make_shared<std::vector<HeadPagePreparedMap>>();
  for (const HeadPageMap& map : input.maps)
    maps->push_back(
        {map.name, make_levels(map.weights, {tokens, tokens, true}, {}, map.name), map.color});

  // The maps take what the first list and the labels leave.
  const double list_width = input.lists.empty() ? 0 : kListWidth + kHeadPageGap;
  double side =
      std::min((kHeadPageWidth - list_width - 46 - static_cast<double>(count - 1) * kHeadPageGap) /
                   static_cast<double>(count),
               kMostSide);
  std::optional<TokenLabels> labels;
  double room = 4;
  if ((side - 14) / static_cast<double>(tokens) >= kLeastLabelledCell) {
    labels.emplace(input.tokens, side / static_cast<double>(tokens), theme);
    room = labels->room();
  }
  side = std::min(
      side, (kHeadPageWidth - list_width - room - static_cast<double>(count - 1) * kHeadPageGap) /
                static_cast<double>(count));
  // Facts may take two lines.
  const TextStyle fact_style = {.size = theme.text_size,
                                .color = theme.text,
                                .vertical = VerticalAlign::kTop,
                                .max_width = kHeadPageWidth,
                                .max_lines = 2};
  std::vector<double> fact_heights;
  for (const std::string& fact : input.facts)
    fact_heights.push_back(text_size(fact, fact_style).height + 2);
  const double facts_height = std::accumulate(fact_heights.begin(), fact_heights.end(), 0.0);
  double upper = kHeading + side + (labels ? room : 4) + 6 + kColorBarHeight;
  const std::size_t beside = std::min(input.beside, input.lists.size());
  double beside_height = 0;
  for (std::size_t l = 0; l < beside; ++l)
    beside_height += list_height(input.lists[l], theme) + kListGap;
  upper = std::max(upper, beside_height);
  double lower = 0;
  if (!input.bars.empty())
    lower = kHeading + static_cast<double>(input.bars.size()) * bar_row(count) + 12;
  // The other lists stand in two columns right of the bars.
  const double left = input.bars.empty() ? 0 : kBarsWidth + kHeadPageGap;
  const double column = (kHeadPageWidth - left - kHeadPageGap) / 2;
  double ends[2] = {0, 0};
  for (std::size_t l = beside; l < input.lists.size(); ++l)
    ends[(l - beside) % 2] += list_height(input.lists[l], theme) + kListGap;
  lower = std::max({lower, ends[0], ends[1]});
  const double height = facts_height + 6 + upper + (lower > 0 ? kHeadPageGap + lower : 0);

  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const auto all = std::make_shared<const HeadPage>(input);
  return make_page(parts, {kHeadPageWidth, height}, theme, [=](Canvas& canvas, const Rect& body) {
    double y = body.y;
    for (std::size_t f = 0; f < all->facts.size(); ++f) {
      canvas.text({body.x, y}, all->facts[f], fact_style);
      y += fact_heights[f];
    }
    y += 6;
    double x = body.x + room;
    for (std::size_t m = 0; m < maps->size(); ++m, x += side + kHeadPageGap) {
      const HeadPagePreparedMap& entry = (*maps)[m];
      const Rect map = canvas.snapped({x, y + kHeading, side, side});
      canvas.fill({map.x, y + 1.5, 5, 5}, theme.category(entry.color));
      canvas.text({map.x + 8, y}, entry.name, heading_style(theme, side - 8));
      canvas.heatmap(map, entry.map, ScaleKind::kMagnitude, level_colors({}, theme));
      canvas.frame(map, {theme.frame, theme.hair_width});
      if (labels && m == 0) labels->draw_queries(canvas, map);
      if (labels) labels->draw_keys(canvas, map);
      if (m == 0)
        draw_color_bar(canvas, {map.x, map.bottom() + (labels ? room : 4) + 6}, side, {},
                       "attention weight", theme);
    }
    double list_y = y;
    for (std::size_t l = 0; l < beside; ++l) {
      draw_list(canvas, {body.x + kHeadPageWidth - kListWidth, list_y}, kListWidth, all->lists[l],
                theme);
      list_y += list_height(all->lists[l], theme) + kListGap;
    }
    y += upper + kHeadPageGap;
    if (!all->bars.empty()) draw_bars(canvas, {body.x, y, kBarsWidth, lower}, *all, theme);
    double next[2] = {y, y};
    for (std::size_t l = beside; l < all->lists.size(); ++l) {
      const std::size_t side_of = (l - beside) % 2;
      draw_list(
          canvas,
          {body.x + left + static_cast<double>(side_of) * (column + kHeadPageGap), next[side_of]},
          column, all->lists[l], theme);
      next[side_of] += list_height(all->lists[l], theme) + kListGap;
    }
  });
}

}  // namespace filigree::figure

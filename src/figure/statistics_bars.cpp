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

constexpr double kBarFullWidth = 516;
constexpr double kPlotHeight = 78;
constexpr double kBarsGap = 14;

void check_statistic(const Statistic& statistic, std::size_t models) {
  const std::string what = fmt::format("statistics: '{}'", printable(statistic.name));
  const std::size_t groups = std::max<std::size_t>(1, statistic.groups.size());
  require(statistic.estimates.size() == models, "{} has estimates of {} models, not of {}", what,
          statistic.estimates.size(), models);
  for (const std::vector<Estimate>& of_model : statistic.estimates) {
    require(of_model.size() == groups, "{} has {} estimates for {} groups", what, of_model.size(),
            groups);
    for (const Estimate& estimate : of_model) {
      require(std::isfinite(estimate.value) && std::isfinite(estimate.low) &&
                  std::isfinite(estimate.high),
              "{}: {} [{}, {}] is not finite; leave the statistic out", what, estimate.value,
              estimate.low, estimate.high);
      require(estimate.low <= estimate.high, "{}: the interval [{}, {}] ends before it starts",
              what, estimate.low, estimate.high);
      require(
          statistic.axis.scale == AxisScale::kLinear || std::min(estimate.value, estimate.low) > 0,
          "{}: {} has no place on a logarithmic axis; use a linear one", what,
          std::min(estimate.value, estimate.low));
    }
  }
}

Axis value_axis(const Statistic& statistic) {
  std::vector<double> data;
  for (const std::vector<Estimate>& of_model : statistic.estimates)
    for (const Estimate& estimate : of_model)
      data.insert(data.end(), {estimate.value, estimate.low, estimate.high});
  AxisSpec spec = statistic.axis;
  if (spec.scale == AxisScale::kLinear) {
    spec.include.push_back(0);  // bars start there
    spec.ends_on_ticks = true;
  }
  return Axis(spec, data, 4);
}

double tick_room(const Axis& axis, const Theme& theme) {
  double widest = 0;
  for (const Tick& tick : axis.ticks())
    widest = std::max(widest, text_size(tick.label, {.size = theme.small_size}).width);
  return widest + 5;
}

void draw_value_axis(Canvas& canvas, const Rect& area, const Axis& axis, const Theme& theme) {
  canvas.fill(area, theme.plot);
  for (const Tick& tick : axis.ticks()) {
    const double y = area.bottom() - axis.position(tick.value) * area.height;
    canvas.line({area.x, y}, {area.right(), y}, {theme.grid, theme.hair_width});
    canvas.text({area.x - 3.5, y}, tick.label,
                {.size = theme.small_size,
                 .color = theme.muted,
                 .align = Align::kRight,
                 .vertical = VerticalAlign::kMiddle});
  }
}

// One bar or dot with its whisker; returns where its number goes: beyond its far end.
Point draw_estimate(Canvas& canvas, const Rect& slot, const Estimate& estimate, const Axis& axis,
                    AxisScale scale, const Color& color, const Theme& theme) {
  const auto y_of = [&](double value) {
    return slot.bottom() - axis.position(value) * slot.height;
  };
  const double x = slot.center().x, y = y_of(estimate.value);
  const bool bar = scale == AxisScale::kLinear;
  if (bar) {
    const double zero = y_of(0);
    canvas.fill({slot.x, std::min(y, zero), slot.width, std::abs(y - zero)}, color);
  }
  const bool upwards = !bar || estimate.value >= 0;
  double end = y;
  if (estimate.low < estimate.high) {
    const double low = y_of(estimate.low), high = y_of(estimate.high);
    const double cap = std::min(2.5, slot.width * 0.3);
    const Stroke whisker = {bar ? theme.text : color, 0.8};
    canvas.line({x, low}, {x, high}, whisker);
    canvas.line({x - cap, low}, {x + cap, low}, whisker);
    canvas.line({x - cap, high}, {x + cap, high}, whisker);
    end = upwards ? std::min(end, high) : std::max(end, low);
  }
  if (!bar) {
    canvas.dots(std::array{Point{x, y}}, 2.4, color, {theme.plot, 0.6});
    end = std::min(end, y - 2.4);
  }
  return {x, upwards ? end - 2.5 : end + 2 + cap_height(theme.small_size)};
}

// Wrapped, so that no interval or p-value is cut.
TextStyle note_style(const Theme& theme, double width) {
  return {.size = theme.small_size,
          .color = theme.muted,
          .vertical = VerticalAlign::kTop,
          .max_width = width,
          .max_lines = 3};
}

// What stands above a plot: name, notes, and room for the numbers of the bars.
double head_height(double notes, const Theme& theme) {
  return line_height(theme.text_size + 0.5) + notes + 13;
}

// What keeps the plots of a column and of a row aligned: room for the widest tick labels and for
// the longest note among them.
struct Room {
  double ticks, notes;
};

void draw_statistic(Canvas& canvas, Point corner, double width, const Statistic& statistic,
                    const Room& room, const Theme& theme) {
  const double name_height = line_height(theme.text_size + 0.5);
  canvas.text(corner, statistic.name,
              {.size = theme.text_size + 0.5,
               .color = theme.text,
               .bold = true,
               .vertical = VerticalAlign::kTop,
               .max_width = width});
  canvas.text({corner.x, corner.y + name_height}, statistic.note, note_style(theme, width));
  const Axis axis = value_axis(statistic);
  const Rect area = {corner.x + room.ticks, corner.y + head_height(room.notes, theme),
                     width - room.ticks, kPlotHeight};
  draw_value_axis(canvas, area, axis, theme);

  const std::size_t groups = std::max<std::size_t>(1, statistic.groups.size());
  const std::size_t models = statistic.estimates.size();
  const double group_width = area.width / static_cast<double>(groups);
  const double slot_width =
      std::min(26.0, group_width * (groups == 1 ? 0.62 : 0.8) / static_cast<double>(models));
  std::size_t every = 1;  // labels that would touch are thinned out
  for (const std::string& group : statistic.groups) {
    const double needed = text_size(group, {.size = theme.small_size}).width + 2;
    every = std::max(every, static_cast<std::size_t>(std::ceil(needed / group_width)));
  }
  for (std::size_t g = 0; g < groups; ++g) {
    const double middle = area.x + (static_cast<double>(g) + 0.5) * group_width;
    for (std::size_t m = 0; m < models; ++m) {
      const double offset = static_cast<double>(m) - static_cast<double>(models) / 2;
      const Rect slot = {middle + offset * slot_width + slot_width * 0.06, area.y,
                         slot_width * 0.88, area.height};
      const Estimate& estimate = statistic.estimates[m][g];
      const Point number = draw_estimate(canvas, slot, estimate, axis, statistic.axis.scale,
                                         theme.category(m), theme);
      if (groups > 1) continue;
      canvas.text(number, format_number(estimate.value, 2, statistic.axis.format),
                  {.size = theme.small_size, .color = theme.text, .align = Align::kCenter});
    }
    if (g < statistic.groups.size() && g % every == 0)
      canvas.text({middle, area.bottom() + 1.5}, statistic.groups[g],
                  {.size = theme.small_size,
                   .color = theme.muted,
                   .align = Align::kCenter,
                   .vertical = VerticalAlign::kTop,
                   .max_width = group_width * static_cast<double>(every)});
  }
  const double base = statistic.axis.scale == AxisScale::kLinear
                          ? area.bottom() - axis.position(0) * area.height
                          : area.bottom();
  canvas.line({area.x, base}, {area.right(), base}, {theme.muted, theme.hair_width});
}

}  // namespace

Figure make_figure(const StatisticsBars& input, const Theme& theme) {
  require(!input.statistics.empty(), "statistics: there are none to draw");
  require(!input.models.empty(), "statistics: there are no models");
  std::size_t most_groups = 1;
  for (const Statistic& statistic : input.statistics) {
    check_statistic(statistic, input.models.size());
    most_groups = std::max(most_groups, statistic.groups.size());
  }
  std::vector<LegendEntry> legend;
  for (std::size_t m = 0; m < input.models.size(); ++m)
    legend.push_back({input.models[m], theme.category(m)});

  const std::size_t most_columns = most_groups <= 1 ? 4 : most_groups <= 4 ? 3 : 2;
  const std::size_t columns = std::min(most_columns, input.statistics.size());
  const double box_width = (kBarFullWidth - static_cast<double>(most_columns - 1) * kBarsGap) /
                           static_cast<double>(most_columns);
  const std::size_t rows = (input.statistics.size() + columns - 1) / columns;
  std::vector<double> notes(rows, line_height(theme.small_size));
  for (std::size_t i = 0; i < input.statistics.size(); ++i)
    notes[i / columns] =
        std::max(notes[i / columns],
                 text_size(input.statistics[i].note, note_style(theme, box_width)).height);
  const double width =
      std::max(200.0, static_cast<double>(columns) * (box_width + kBarsGap) - kBarsGap);
  const double top = legend_height(legend, width, theme) + 6;
  std::vector<double> row_tops;
  double height = top;
  for (const double note : notes) {
    row_tops.push_back(height);
    height += head_height(note, theme) + kPlotHeight +
              (most_groups > 1 ? line_height(theme.small_size) : 0) + 3 + kBarsGap;
  }
  height -= kBarsGap;

  std::vector<double> left(columns);
  for (std::size_t i = 0; i < input.statistics.size(); ++i)
    left[i % columns] =
        std::max(left[i % columns], tick_room(value_axis(input.statistics[i]), theme));

  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const auto statistics = std::make_shared<const std::vector<Statistic>>(input.statistics);
  return make_page(parts, {width, height}, theme, [=](Canvas& canvas, const Rect& body) {
    draw_legend(canvas, {body.x, body.y}, width, legend, theme);
    for (std::size_t i = 0; i < statistics->size(); ++i) {
      const Point corner = {body.x + static_cast<double>(i % columns) * (box_width + kBarsGap),
                            body.y + row_tops[i / columns]};
      draw_statistic(canvas, corner, box_width, (*statistics)[i],
                     {left[i % columns], notes[i / columns]}, theme);
    }
  });
}

}  // namespace filigree::figure

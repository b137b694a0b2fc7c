#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kLabelledPageWidth = 516;
constexpr double kGroupGap = 4;
constexpr double kLabelledPanelGap = 18, kPanelGapBelow = 12;
constexpr double kLeastLabelled = 5.2;  // size of a cell that gets its own label
constexpr double kLabelledLargestCell = 20;
constexpr double kWordWidth = 38, kLeastWordWidth = 25, kWordHeight = 12;
constexpr double kMostLabel = 60;
constexpr double kLabelGap = 2.5;

struct AxisPlace {
  double begin = 0, end = 0;
};

// An axis with the places of its cells.
struct LaidAxis {
  MapAxis axis;
  double cell = 0;
  std::vector<AxisPlace> groups;  // without the gaps
  double length = 0;
  bool by_cell = true;  // labels of cells, not of groups
  double room = 0;      // that the labels need beside the map
  std::vector<std::string> labels;

  double middle(std::size_t index) const {
    std::size_t first = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t count = axis.groups[g].count;
      if (index < first + count)
        return groups[g].begin + (static_cast<double>(index - first) + 0.5) * cell;
      first += count;
    }
    return length;
  }
};

TextStyle label_style(double cell, const Theme& theme) {
  return {.size = std::clamp(cell * 0.85, 4.2, theme.small_size),
          .color = theme.muted,
          .align = Align::kRight,
          .vertical = VerticalAlign::kMiddle,
          .max_width = kMostLabel};
}

std::size_t cells_of(const MapAxis& axis) { return axis.labels.size(); }

double gaps_of(const MapAxis& axis) {
  return axis.gaps && axis.groups.size() > 1
             ? kGroupGap * static_cast<double>(axis.groups.size() - 1)
             : 0;
}

LaidAxis lay(MapAxis axis, double cell, const Theme& theme) {
  if (axis.groups.empty()) axis.groups = {{"", cells_of(axis)}};
  LaidAxis laid = {axis, cell, {}, 0, true, 0, {}};
  double at = 0;
  for (const AxisGroup& group : axis.groups) {
    if (at > 0 && axis.gaps) at += kGroupGap;
    const double begin = at;
    at += cell * static_cast<double>(group.count);
    laid.groups.push_back({begin, at});
  }
  laid.length = at;
  laid.by_cell = cell >= kLeastLabelled ||
                 std::all_of(axis.groups.begin(), axis.groups.end(),
                             [](const AxisGroup& group) { return group.label.empty(); });
  const TextStyle style = label_style(laid.by_cell ? cell : theme.small_size * 2, theme);
  if (laid.by_cell) {
    for (const std::string& label : axis.labels)
      laid.labels.push_back(axis.tokens ? visible_token(label) : visible_text(label));
  } else {
    for (const AxisGroup& group : axis.groups) laid.labels.push_back(visible_text(group.label));
  }
  for (const std::string& label : laid.labels)
    laid.room = std::max(laid.room, text_size(label, style).width + kLabelGap);
  return laid;
}

struct LaidPanel {
  MapPanel panel;
  LaidAxis rows, columns;
  Point corner;  // of the map, relative to the body
  Size size;     // with labels and names
  double left = 0, top = 0;
};

void check_axis(const MapAxis& axis, const std::string& name) {
  require(!axis.labels.empty(), "{}: the axis '{}' has no cells", name, printable(axis.name));
  std::size_t count = 0;
  for (const AxisGroup& group : axis.groups) count += group.count;
  require(axis.groups.empty() || count == axis.labels.size(),
          "{}: the groups of '{}' have {} cells, its labels are {}", name, printable(axis.name),
          count, axis.labels.size());
}

void check_panel(const MapPanel& panel, ScaleKind kind) {
  const std::string name = fmt::format("heat map '{}'", printable(panel.title));
  check_axis(panel.rows, name);
  check_axis(panel.columns, name);
  const std::size_t columns = cells_of(panel.columns);
  require(panel.values.size() == cells_of(panel.rows) * columns,
          "{}: {} values for {} rows and {} columns", name, panel.values.size(),
          cells_of(panel.rows), columns);
  require(panel.words.empty() || panel.words.size() == panel.values.size(),
          "{}: {} words for {} cells", name, panel.words.size(), panel.values.size());
  for (std::size_t i = 0; i < panel.values.size(); ++i) {
    const float value = panel.values[i];
    require(!std::isinf(value), "{}: the value at '{}', '{}' is {}; figures need finite numbers",
            name, printable(panel.rows.labels[i / columns]),
            printable(panel.columns.labels[i % columns]), value);
    require(kind == ScaleKind::kDifference || !(value < 0),
            "{}: the value at '{}', '{}' is {}; a scale from 0 cannot show it", name,
            printable(panel.rows.labels[i / columns]), printable(panel.columns.labels[i % columns]),
            value);
  }
}

double scale_end(const LabelledMaps& input) {
  if (input.end > 0) return input.end;
  double most = 0;
  for (const MapPanel& panel : input.panels)
    for (const float value : panel.values)
      if (!std::isnan(value)) most = std::max(most, std::abs(static_cast<double>(value)));
  if (most <= 0) return 1;
  const double unit = std::pow(10, std::floor(std::log10(most)) - 1);
  return std::ceil(most / unit - 1e-6) * unit;
}

std::uint8_t level(float value, const ColorScale& scale) {
  // A magnitude that does not exist has no level of its own: it is drawn apart.
  return std::isnan(value) && scale.kind == ScaleKind::kMagnitude ? 0 : level_of(value, scale);
}

// Panels with cells of the given size.
LaidPanel lay_panel(const MapPanel& panel, double width, double height, const Theme& theme) {
  LaidPanel laid = {
      panel, lay(panel.rows, height, theme), lay(panel.columns, width, theme), {}, {}, 0, 0};
  const double name = line_height(theme.text_size);
  laid.left = laid.rows.room + (panel.rows.name.empty() ? 0 : name + 1);
  laid.top = panel.title.empty() ? 1 : name + 3;
  // A title wider than a narrow map is cut, but a little room is only fair.
  const double title =
      std::min(150.0, text_size(panel.title, {.size = theme.text_size, .bold = true}).width);
  laid.size.width = laid.left + std::max(laid.columns.length, title) + 1;
  laid.size.height =
      laid.top + laid.rows.length + laid.columns.room + (panel.columns.name.empty() ? 2 : name + 2);
  return laid;
}

void draw_words(Canvas& canvas, const LaidPanel& laid, Point corner, const LevelColors& colors,
                const ColorScale& scale, const Theme& theme) {
  const std::size_t columns = cells_of(laid.panel.columns);
  for (std::size_t i = 0; i < laid.panel.words.size(); ++i) {
    const Color background = std::isnan(laid.panel.values[i])
                                 ? theme.undefined
                                 : colors[level(laid.panel.values[i], scale)];
    canvas.text(
        {corner.x + laid.columns.middle(i % columns), corner.y + laid.rows.middle(i / columns)},
        visible_token(laid.panel.words[i]),
        {.size = theme.small_size,
         .color = more_contrast(theme.text, theme.page, background),
         .align = Align::kCenter,
         .vertical = VerticalAlign::kMiddle,
         .max_width = laid.columns.cell - 2});
  }
}

void draw_labels(Canvas& canvas, const LaidPanel& laid, Point corner, const Theme& theme) {
  const auto places = [](const LaidAxis& axis) {
    std::vector<double> middles;
    if (axis.by_cell)
      for (std::size_t i = 0; i < axis.labels.size(); ++i) middles.push_back(axis.middle(i));
    else
      for (const AxisPlace& group : axis.groups) middles.push_back((group.begin + group.end) / 2);
    return middles;
  };
  const auto style_of = [&](const LaidAxis& axis) {
    return label_style(axis.by_cell ? axis.cell : theme.small_size * 2, theme);
  };
  const std::vector<double> rows = places(laid.rows), columns = places(laid.columns);
  for (std::size_t i = 0; i < rows.size(); ++i)
    canvas.text({corner.x - kLabelGap, corner.y + rows[i]}, laid.rows.labels[i],
                style_of(laid.rows));
  TextStyle turned = style_of(laid.columns);
  turned.angle = 90;
  for (std::size_t i = 0; i < columns.size(); ++i)
    canvas.text({corner.x + columns[i], corner.y + laid.rows.length + kLabelGap},
                laid.columns.labels[i], turned);
  const TextStyle name = {.size = theme.text_size, .color = theme.text, .align = Align::kCenter};
  if (!laid.panel.columns.name.empty()) {
    TextStyle below = name;
    below.vertical = VerticalAlign::kTop;
    canvas.text(
        {corner.x + laid.columns.length / 2, corner.y + laid.rows.length + laid.columns.room + 1},
        laid.panel.columns.name, below);
  }
  if (!laid.panel.rows.name.empty()) {
    TextStyle beside = name;
    beside.angle = 90;
    beside.max_width = std::max(20.0, laid.rows.length);
    canvas.text({corner.x - laid.rows.room - 3, corner.y + laid.rows.length / 2},
                laid.panel.rows.name, beside);
  }
}

void draw_map(Canvas& canvas, const LaidPanel& laid, Point corner, const ColorScale& scale,
              const Theme& theme) {
  const std::size_t columns = cells_of(laid.panel.columns);
  const LevelColors colors = level_colors(scale, theme);
  const Stroke frame = {theme.frame, theme.hair_width};
  std::size_t first_row = 0;
  for (std::size_t r = 0; r < laid.rows.groups.size(); ++r) {
    const std::size_t row_count = laid.rows.axis.groups[r].count;
    std::size_t first_column = 0;
    for (std::size_t c = 0; c < laid.columns.groups.size(); ++c) {
      const std::size_t column_count = laid.columns.axis.groups[c].count;
      LevelMap map = {row_count, column_count, {}};
      std::vector<Rect> undefined;
      const Rect place = canvas.snapped({corner.x + laid.columns.groups[c].begin,
                                         corner.y + laid.rows.groups[r].begin,
                                         laid.columns.groups[c].end - laid.columns.groups[c].begin,
                                         laid.rows.groups[r].end - laid.rows.groups[r].begin});
      for (std::size_t i = 0; i < row_count; ++i)
        for (std::size_t j = 0; j < column_count; ++j) {
          const float value = laid.panel.values[(first_row + i) * columns + first_column + j];
          map.levels.push_back(level(value, scale));
          if (std::isnan(value) && scale.kind == ScaleKind::kMagnitude) {
            const double width = place.width / static_cast<double>(column_count);
            const double height = place.height / static_cast<double>(row_count);
            undefined.push_back({place.x + static_cast<double>(j) * width,
                                 place.y + static_cast<double>(i) * height, width, height});
          }
        }
      if (!map.levels.empty()) {
        canvas.heatmap(place, map, scale.kind, colors);
        // One rectangle where it can be: many small ones leave seams.
        if (undefined.size() == map.levels.size()) undefined = {place};
        for (const Rect& cell : undefined) canvas.fill(cell, theme.undefined);
        canvas.frame(place, frame);
      }
      first_column += column_count;
    }
    first_row += row_count;
  }
}

}  // namespace

Figure make_figure(const LabelledMaps& input, const Theme& theme) {
  require(!input.panels.empty(), "heat map: there is no panel to draw");
  std::size_t most_columns = 0;
  bool words = false, undefined = false, groups = false, parted = false;
  double extra = 0;
  for (const MapPanel& panel : input.panels) {
    check_panel(panel, input.kind);
    most_columns = std::max(most_columns, cells_of(panel.columns));
    words = words || !panel.words.empty();
    groups = groups || panel.columns.groups.size() > 1;
    parted = parted || (panel.columns.groups.size() > 1 && !panel.columns.gaps);
    extra = std::max(extra, gaps_of(panel.columns));
    for (const float value : panel.values) undefined = undefined || std::isnan(value);
  }
  const ColorScale scale = {input.kind, scale_end(input)};
  // Beside each other if the cells stay large enough to be labelled, or could not be anyway.
  const auto count = static_cast<double>(input.panels.size());
  constexpr double kLabelRoom = 44;
  const auto cell_for = [&](double in_a_row) {
    const double room =
        (kLabelledPageWidth - (in_a_row - 1) * kLabelledPanelGap) / in_a_row - kLabelRoom - extra;
    return room / static_cast<double>(most_columns);
  };
  const bool beside =
      input.panels.size() > 1 && !words && (cell_for(count) >= kLeastLabelled + 1 || parted);
  const double fitting = cell_for(beside ? count : 1);
  double width = std::clamp(fitting, 1.0, kLabelledLargestCell), height = width;
  if (words) {
    width = std::clamp(fitting, kLeastWordWidth, kWordWidth);
    height = kWordHeight;
  } else if (!groups || fitting >= kLeastLabelled) {
    width = height = std::clamp(fitting, kLeastLabelled + 0.3, kLabelledLargestCell);
  }
  const auto laid = std::make_shared<std::vector<LaidPanel>>();
  Size body;
  for (const MapPanel& panel : input.panels) {
    LaidPanel one = lay_panel(panel, width, height, theme);
    if (beside) {
      one.corner = {body.width + (laid->empty() ? 0 : kLabelledPanelGap), 0};
      body.width = one.corner.x + one.size.width;
      body.height = std::max(body.height, one.size.height);
    } else {
      one.corner = {0, body.height + (laid->empty() ? 0 : kPanelGapBelow)};
      body.width = std::max(body.width, one.size.width);
      body.height = one.corner.y + one.size.height;
    }
    laid->push_back(std::move(one));
  }
  // Maps below each other line up.
  if (!beside) {
    double left = 0;
    for (const LaidPanel& one : *laid) left = std::max(left, one.left);
    for (LaidPanel& one : *laid) {
      one.corner.x = left - one.left;
      body.width = std::max(body.width, one.corner.x + one.size.width);
    }
  }
  const double bar = color_bar_width(scale, input.scale_label, theme);
  const double legend = undefined ? 62 : 0;
  const double maps_height = body.height;
  body.width = std::max({body.width, bar + legend + 8, 200.0});
  body.height += 8 + kColorBarHeight;
  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const std::string scale_label = input.scale_label;
  return make_page(parts, body, theme, [=](Canvas& canvas, const Rect& place) {
    const LevelColors colors = level_colors(scale, theme);
    for (const LaidPanel& one : *laid) {
      const Point corner = {place.x + one.corner.x + one.left, place.y + one.corner.y + one.top};
      if (!one.panel.title.empty())
        canvas.text({corner.x, corner.y - 4}, one.panel.title,
                    {.size = theme.text_size,
                     .color = theme.text,
                     .bold = true,
                     .max_width = one.size.width - one.left});
      draw_map(canvas, one, corner, scale, theme);
      draw_words(canvas, one, corner, colors, scale, theme);
      draw_labels(canvas, one, corner, theme);
    }
    const double top = place.y + maps_height + 8;
    draw_color_bar(canvas, {place.x, top}, bar, scale, scale_label, theme);
    if (undefined)
      draw_legend(canvas, {place.x + bar + 10, top - 1.5}, legend, {{"undefined", theme.undefined}},
                  theme);
  });
}

}  // namespace filigree::figure

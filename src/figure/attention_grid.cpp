#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "figure/page.h"
#include "figure/token_labels.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kGridFullWidth = 516;   // 7.2 inches: a page between its margins
constexpr double kFullHeight = 690;      // what title, caption and legend leave of it
constexpr double kGridLeastWidth = 250;  // title and colour bar need it
constexpr double kMostWidth = 4000;
constexpr double kLargestPitch = 170;  // of few heads
constexpr double kGridPanelGap = 9;
constexpr double kRoleStrip = 2.4;
constexpr double kPanelFrame = kPanelTitleHeight + kPanelPadding * 1.5;

double full_width(double width) { return width > 0 ? width : kGridFullWidth; }

double pitch_for(std::size_t columns, double side_room, double width) {
  return std::min(kLargestPitch,
                  (width - 2 * kPanelPadding - side_room) / static_cast<double>(columns));
}

std::size_t rows_for(std::size_t heads, std::size_t columns) {
  return (heads + columns - 1) / columns;
}

std::string name_of(const GridHead& head) { return head_name(head.head); }

void check_input(const AttentionGrid& input) {
  require(input.width == 0 || (input.width >= kGridLeastWidth && input.width <= kMostWidth),
          "attention grid: a width of {} points; it lies between {} and {}", input.width,
          kGridLeastWidth, kMostWidth);
  require(!input.panels.empty(), "attention grid: there is no panel; give at least one model");
  for (const GridPanel& panel : input.panels) {
    const std::string name = fmt::format("attention grid: panel '{}'", printable(panel.title));
    require(!panel.heads.empty(), "{} has no heads; choose at least one", name);
    for (const GridHead& head : panel.heads) {
      require(head.map.rows > 0 && head.map.rows == head.map.columns &&
                  head.map.levels.size() == head.map.rows * head.map.columns,
              "{}: the map of head {} has {} x {} cells; make it with grid_head()", name,
              name_of(head), head.map.rows, head.map.columns);
      require(input.tokens.empty() || head.tokens == input.tokens.size(),
              "{}: head {} has {} tokens, but {} tokens are named", name, name_of(head),
              head.tokens, input.tokens.size());
      for (const std::size_t role : head.roles)
        require(role < input.roles.size(), "{}: head {} has role {}, but only {} are named", name,
                name_of(head), role, input.roles.size());
      for (const GridCell& mark : head.marks)
        require(mark.query < head.tokens && mark.key <= mark.query,
                "{}: head {} marks query {}, key {} of {} tokens", name, name_of(head), mark.query,
                mark.key, head.tokens);
    }
  }
}

// Where everything lies, relative to the body of the page.
struct Layout {
  std::size_t columns = 1;
  double pitch = 0, side = 0, strip = 0;
  double full = kGridFullWidth;
  double note_size = 0;                   // of the letters below maps; 0: none has a note
  double left_room = 0, bottom_room = 0;  // for tokens
  double width = 0, height = 0;
  std::vector<Rect> panels = {};
  double below = 0;  // top of legend and colour bar
  double legend_width = 0;
  std::optional<TokenLabels> labels = {};
  double label_size = 0;

  Rect map(const Rect& panel, std::size_t index) const {
    const auto column = static_cast<double>(index % columns);
    const auto row = static_cast<double>(index / columns);
    return {panel.x + kPanelPadding + left_room + column * pitch,
            panel.y + kPanelTitleHeight + kPanelPadding / 2 + row * (pitch + strip), side, side};
  }
};

void size_maps(Layout& layout) {
  layout.pitch = pitch_for(layout.columns, layout.left_room, layout.full);
  layout.side = layout.pitch - std::clamp(layout.pitch * 0.1, 2.5, 9.0);
}

Layout make_layout_of(const AttentionGrid& input, const std::vector<LegendEntry>& legend,
                      const Theme& theme) {
  Layout layout;
  std::vector<std::size_t> counts;
  for (const GridPanel& panel : input.panels) counts.push_back(panel.heads.size());
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  layout.full = full_width(input.width);
  layout.columns =
      input.columns > 0 ? std::min(input.columns, most) : automatic_columns(counts, input.width);
  layout.strip = input.roles.empty() ? 0 : kRoleStrip;
  size_maps(layout);
  if (!input.tokens.empty()) {
    const auto tokens = static_cast<double>(input.tokens.size());
    if (layout.side / tokens >= kLeastLabelledCell) {
      const Layout without = layout;
      layout.labels.emplace(input.tokens, layout.side / tokens, theme);
      layout.left_room = layout.bottom_room = layout.labels->room();
      size_maps(layout);
      if (layout.side / tokens < kLeastLabelledCell) layout = without;
    }
  }
  layout.label_size = std::clamp(layout.side * 0.13, 3.4, theme.text_size);
  const auto has_note = [](const GridHead& head) { return !head.note.empty(); };
  if (std::any_of(input.panels.begin(), input.panels.end(), [&](const GridPanel& panel) {
        return std::any_of(panel.heads.begin(), panel.heads.end(), has_note);
      })) {
    layout.note_size = std::clamp(layout.side * 0.12, 4.0, theme.small_size);
    layout.strip += line_height(layout.note_size);
  }
  const double used = 2 * kPanelPadding + layout.left_room +
                      static_cast<double>(layout.columns) * layout.pitch -
                      (layout.pitch - layout.side);
  layout.width = std::max(kGridLeastWidth, used);
  for (const std::size_t count : counts) {
    if (!layout.panels.empty()) layout.height += kGridPanelGap;
    const auto rows = static_cast<double>(rows_for(count, layout.columns));
    const double height = kPanelFrame + rows * (layout.pitch + layout.strip) -
                          (layout.pitch - layout.side) + layout.bottom_room;
    layout.panels.push_back({0, layout.height, layout.width, height});
    layout.height += height;
  }
  layout.below = layout.height + 7;
  // Side by side where both fit, else the legend below the bar.
  layout.legend_width = layout.width - color_bar_width(input.scale, input.scale_label, theme) - 16;
  layout.height =
      layout.below + std::max(kColorBarHeight, legend_height(legend, layout.legend_width, theme));
  return layout;
}

void draw_head(Canvas& canvas, const AttentionGrid& input, const Layout& layout,
               const LevelColors& colors, const GridHead& head, const Rect& place,
               const Theme& theme) {
  const Rect map = canvas.snapped(place);
  canvas.heatmap(map, head.map, input.scale.kind, colors);
  canvas.frame(map, {theme.frame, theme.hair_width});
  for (std::size_t i = 0; i < head.roles.size(); ++i) {
    const double width = map.width / static_cast<double>(head.roles.size());
    canvas.fill(
        {map.x + static_cast<double>(i) * width, map.bottom() + 0.4, width, kRoleStrip - 0.4},
        theme.category(head.roles[i]));
  }
  const double cell = map.width / static_cast<double>(head.tokens);
  for (const GridCell& mark : head.marks) {
    // Small cells get a frame around them that can be seen.
    const double side = std::max(cell, 3.0);
    const Point middle = {map.x + (static_cast<double>(mark.key) + 0.5) * cell,
                          map.y + (static_cast<double>(mark.query) + 0.5) * cell};
    canvas.frame({middle.x - side / 2, middle.y - side / 2, side, side}, {theme.category(0), 0.9});
  }
  if (!head.note.empty())
    canvas.text({map.center().x, map.bottom() + layout.strip - line_height(layout.note_size) / 2},
                head.note,
                {.size = layout.note_size,
                 .color = theme.text,
                 .align = Align::kCenter,
                 .vertical = VerticalAlign::kMiddle,
                 .max_width = layout.pitch - 1});
  // The corner is above the diagonal, and so free, unless there is one cell only.
  const Color behind = colors[head.map.levels[head.map.columns - 1]];
  TextStyle style = {.size = layout.label_size,
                     .color = more_contrast(theme.text, theme.page, behind),
                     .align = Align::kRight,
                     .vertical = VerticalAlign::kTop};
  const double inset = std::min(3.0, layout.side * 0.035);
  canvas.text({map.right() - inset, map.y + inset * 0.5}, name_of(head), style);
  if (head.roles.empty() || head.tokens < 4) return;
  // Colours alone do not carry eleven roles: where there is room the name stands there too.
  std::string names;
  for (const std::size_t role : head.roles)
    names += (names.empty() ? "" : " + ") + input.roles[role];
  style.size = layout.label_size * 0.8;
  style.color = theme.muted;
  if (style.size >= 4.5 && text_size(names, style).width < map.width * 0.62)
    canvas.text({map.right() - inset, map.y + inset * 0.5 + line_height(layout.label_size) * 0.9},
                names, style);
}

}  // namespace

GridHead grid_head(const HeadId& head, std::span<const float> weights, std::int64_t tokens,
                   const ColorScale& scale) {
  GridHead result = {.head = head, .tokens = static_cast<std::size_t>(tokens)};
  result.map = make_levels(weights, {result.tokens, result.tokens, true}, scale,
                           "attention grid: head " + name_of(result));
  return result;
}

std::size_t automatic_columns(std::span<const std::size_t> heads_per_panel, double width) {
  require(!heads_per_panel.empty(), "attention grid: there is no panel");
  width = full_width(width);
  const std::size_t most = *std::max_element(heads_per_panel.begin(), heads_per_panel.end());
  std::size_t best = 1;
  double best_score = -1e9;
  for (std::size_t columns = 1; columns <= std::max<std::size_t>(most, 1); ++columns) {
    const double pitch = pitch_for(columns, 0, width);
    double height = 0;
    std::size_t empty = 0, total = 0;
    for (const std::size_t heads : heads_per_panel) {
      const std::size_t rows = rows_for(heads, columns);
      height += static_cast<double>(rows) * (pitch + kRoleStrip) + kPanelFrame + kGridPanelGap;
      empty += rows * columns - heads;
      total += rows * columns;
    }
    // Maps of 64 points are as large as they need be; beyond that, and for a page that is higher
    // than wide, little is gained. What does not fit on one page counts as much smaller, and rows
    // that end early cost a little.
    const double comfortable = std::log(std::min(pitch, 64.0)) + 0.1 * std::log(pitch / height);
    const double tall = 0.5 * std::log(std::max(1.0, height / (0.85 * width)));
    const double too_tall = 3 * std::log(std::max(1.0, height / kFullHeight));
    const double waste = 0.3 * static_cast<double>(empty) / static_cast<double>(total);
    const double score = comfortable - tall - too_tall - waste;
    if (score > best_score) {
      best_score = score;
      best = columns;
    }
  }
  return best;
}

Figure make_figure(const AttentionGrid& input, const Theme& theme) {
  check_input(input);
  std::vector<bool> used(input.roles.size());
  for (const GridPanel& panel : input.panels)
    for (const GridHead& head : panel.heads)
      for (const std::size_t role : head.roles) used[role] = true;
  std::vector<LegendEntry> legend;
  for (std::size_t role = 0; role < input.roles.size(); ++role)
    if (used[role]) legend.push_back({input.roles[role], theme.category(role)});
  PageParts parts = {.title = input.title};
  if (!input.prompt.empty()) parts.captions.push_back(input.prompt);
  if (!input.metric.empty()) parts.captions.push_back(input.metric);
  const Layout layout = make_layout_of(input, legend, theme);
  // Shared, not copied with every copy of the figure.
  const auto data = std::make_shared<const AttentionGrid>(input);
  return make_page(parts, {layout.width, layout.height}, theme,
                   [=](Canvas& canvas, const Rect& body) {
                     const LevelColors colors = level_colors(data->scale, theme);
                     for (std::size_t p = 0; p < layout.panels.size(); ++p) {
                       const GridPanel& panel = data->panels[p];
                       Rect rect = layout.panels[p];
                       rect.x += body.x;
                       rect.y += body.y;
                       draw_panel(canvas, rect, panel.title, theme);
                       for (std::size_t i = 0; i < panel.heads.size(); ++i) {
                         const Rect map = layout.map(rect, i);
                         draw_head(canvas, *data, layout, colors, panel.heads[i], map, theme);
                         if (!layout.labels) continue;
                         Rect labelled = canvas.snapped(map);
                         if (i % layout.columns == 0) layout.labels->draw_queries(canvas, labelled);
                         labelled.height += layout.strip;
                         if (i + layout.columns >= panel.heads.size())
                           layout.labels->draw_keys(canvas, labelled);
                       }
                     }
                     const double bar = color_bar_width(data->scale, data->scale_label, theme);
                     draw_legend(canvas, {body.x + 1, body.y + layout.below - 1},
                                 layout.legend_width, legend, theme);
                     draw_color_bar(canvas, {body.right() - bar, body.y + layout.below}, bar,
                                    data->scale, data->scale_label, theme);
                   });
}

}  // namespace filigree::figure

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "figure/page.h"
#include "figure/token_labels.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kStripWidth = 516;
constexpr double kStripGap = 12;
constexpr double kStripNameHeight = 13;
constexpr double kAxisName = 10;  // "key", "query"

struct StripMap {
  std::string name;
  LevelMap map;
  ColorScale scale;
};

// Where there is no room for tokens: their positions.
void draw_positions(Canvas& canvas, const Rect& map, std::size_t tokens, const Theme& theme,
                    bool queries) {
  const auto count = static_cast<double>(tokens);
  const Axis axis({.low = -0.5, .high = count - 0.5}, {}, 6);
  const TextStyle style = {.size = theme.small_size, .color = theme.muted};
  for (const Tick& tick : axis.ticks()) {
    const double part = axis.position(tick.value);
    TextStyle below = style, left = style;
    below.align = Align::kCenter;
    below.vertical = VerticalAlign::kTop;
    left.align = Align::kRight;
    left.vertical = VerticalAlign::kMiddle;
    const Stroke mark = {theme.muted, theme.hair_width};
    const double x = map.x + part * map.width, y = map.y + part * map.height;
    canvas.line({x, map.bottom()}, {x, map.bottom() + 2}, mark);
    canvas.text({x, map.bottom() + 2.5}, tick.label, below);
    if (!queries) continue;
    canvas.line({map.x - 2, y}, {map.x, y}, mark);
    canvas.text({map.x - 3.5, y}, tick.label, left);
  }
}

}  // namespace

Figure make_figure(const HeadStrip& input, const Theme& theme) {
  const std::size_t tokens = input.tokens.size();
  const std::string what = fmt::format("head strip '{}'", printable(input.title));
  require(tokens > 0, "{}: there are no tokens", what);
  require(input.dense.size() == tokens * tokens && input.sparse.size() == tokens * tokens,
          "{}: {} tokens need maps of {} values, but dense has {} and sparse {}", what, tokens,
          tokens * tokens, input.dense.size(), input.sparse.size());
  const MapShape shape = {tokens, tokens, true};
  const ColorScale difference_scale = {ScaleKind::kDifference, input.difference_end};
  const auto maps = std::make_shared<std::vector<StripMap>>();
  maps->push_back({input.dense_name, make_levels(input.dense, shape, input.scale, what + ", dense"),
                   input.scale});
  maps->push_back({input.sparse_name,
                   make_levels(input.sparse, shape, input.scale, what + ", sparse"), input.scale});
  std::vector<float> difference(input.dense.size());
  std::transform(input.sparse.begin(), input.sparse.end(), input.dense.begin(), difference.begin(),
                 [](float sparse, float dense) { return sparse - dense; });
  maps->push_back({input.sparse_name + " \u2212 " + input.dense_name,
                   make_levels(difference, shape, difference_scale, what + ", difference"),
                   difference_scale});

  // The maps take what the labels leave; the labels depend on the size of a cell.
  double side = (kStripWidth - 2 * kStripGap - kAxisName) / 3;
  std::optional<TokenLabels> labels;
  double room = 20;  // positions
  if ((side - 14) / static_cast<double>(tokens) >= kLeastLabelledCell) {
    labels.emplace(input.tokens, (side - 12) / static_cast<double>(tokens), theme);
    room = labels->room();
  }
  side -= room / 3;
  const double bottom_room = labels ? room : 11;
  const double height = kStripNameHeight + side + bottom_room + kAxisName + 5 + kColorBarHeight;

  PageParts parts = {.title = input.title};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const std::string scale_label = input.scale_label;
  return make_page(parts, {kStripWidth, height}, theme, [=](Canvas& canvas, const Rect& body) {
    const TextStyle axis_name = {.size = theme.small_size,
                                 .color = theme.muted,
                                 .italic = true,
                                 .align = Align::kCenter,
                                 .vertical = VerticalAlign::kTop};
    double left = body.x + kAxisName + room;
    for (std::size_t m = 0; m < maps->size(); ++m) {
      const StripMap& entry = (*maps)[m];
      const Rect map = canvas.snapped({left, body.y + kStripNameHeight, side, side});
      canvas.text(
          {map.x, map.y - 4}, entry.name,
          {.size = theme.text_size + 0.5, .color = theme.text, .bold = true, .max_width = side});
      canvas.heatmap(map, entry.map, entry.scale.kind, level_colors(entry.scale, theme));
      canvas.frame(map, {theme.frame, theme.hair_width});
      if (labels) {
        if (m == 0) labels->draw_queries(canvas, map);
        labels->draw_keys(canvas, map);
      } else {
        draw_positions(canvas, map, tokens, theme, m == 0);
      }
      canvas.text({map.center().x, map.bottom() + bottom_room}, "key", axis_name);
      if (m == 0) {
        TextStyle turned = axis_name;
        turned.angle = 90;
        canvas.text({body.x, map.center().y}, "query", turned);
      }
      const Point bar = {map.x, map.bottom() + bottom_room + kAxisName + 5};
      if (m == 0) draw_color_bar(canvas, bar, side, entry.scale, scale_label, theme);
      if (m == 2) draw_color_bar(canvas, bar, side, entry.scale, "difference", theme);
      left += side + kStripGap;
    }
  });
}

}  // namespace filigree::figure

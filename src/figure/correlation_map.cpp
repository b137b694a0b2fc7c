#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kSide = 400;
constexpr double kLeastCell = 4.2;  // below it names could not be read
constexpr double kCorrelationLargestCell = 60;

std::vector<std::size_t> checked_order(const CorrelationMap& input) {
  const std::size_t count = input.names.size();
  std::vector<std::size_t> order = input.order;
  if (order.empty()) {
    order.resize(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  std::vector<bool> seen(count);
  require(order.size() == count, "correlation map: the order has {} places for {} heads",
          order.size(), count);
  for (const std::size_t place : order) {
    require(place < count && !seen[place],
            "correlation map: the order must name each of the heads 0 to {} once, but {} {}",
            count - 1, place, place < count ? "comes twice" : "is none of them");
    seen[place] = true;
  }
  return order;
}

void check_values(const CorrelationMap& input, const std::vector<float>& values) {
  const std::size_t count = input.names.size();
  require(values.size() == count * count, "correlation map: {} heads need {} values, not {}", count,
          count * count, values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]) && !(std::abs(values[i]) <= 1.0001f))
      fail("correlation map: the correlation of {} and {} is {}, outside -1 to 1",
           printable(input.names[i / count]), printable(input.names[i % count]), values[i]);
}

// What is written at the sides: `size` cells from `begin` on.
struct Label {
  std::string text;
  double begin = 0, size = 1;
};

std::vector<Label> labels_of(const CorrelationMap& input, const std::vector<std::string>& names) {
  std::vector<Label> labels;
  double begin = 0;
  if (input.groups.empty()) {
    for (const std::string& name : names) labels.push_back({name, begin++, 1});
    return labels;
  }
  for (const AxisGroup& group : input.groups) {
    labels.push_back({group.label, begin, static_cast<double>(group.count)});
    begin += static_cast<double>(group.count);
  }
  require(begin == static_cast<double>(names.size()),
          "correlation map: the groups hold {} heads of {}", begin, names.size());
  return labels;
}

}  // namespace

Figure make_figure(const CorrelationMap& input, const Theme& theme) {
  const std::size_t count = input.names.size();
  require(count > 0, "correlation map: there are no heads");
  check_values(input, input.correlations);
  if (!input.above.empty()) check_values(input, input.above);
  const std::vector<std::size_t> order = checked_order(input);
  const ColorScale scale = {ScaleKind::kDifference, 1};
  const auto map = std::make_shared<LevelMap>();
  *map = {count, count, std::vector<std::uint8_t>(count * count)};
  std::vector<std::string> names;
  bool undefined = false;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(input.names[order[i]]);
    for (std::size_t j = 0; j < count; ++j) {
      const std::vector<float>& source =
          j > i && !input.above.empty() ? input.above : input.correlations;
      const float value = source[order[i] * count + order[j]];
      undefined = undefined || std::isnan(value);
      map->levels[i * count + j] = level_of(value, scale);
    }
  }

  const std::vector<Label> labels = labels_of(input, names);
  // Names of groups leave cells as small as the page makes them.
  const double least = input.groups.empty() ? kLeastCell : 1.0;
  const double cell =
      std::clamp(kSide / static_cast<double>(count), least, kCorrelationLargestCell);
  const double side = cell * static_cast<double>(count);
  const TextStyle label = {.size = input.groups.empty()
                                       ? std::clamp(cell * 0.82, 3.2, theme.small_size)
                                       : theme.small_size,
                           .color = theme.muted,
                           .align = Align::kRight,
                           .vertical = VerticalAlign::kMiddle,
                           .max_width = 40};
  double room = 0;
  for (const Label& one : labels) room = std::max(room, text_size(one.text, label).width + 3);
  const bool two = !input.above.empty();
  const double name_height = two ? line_height(theme.text_size) + 2 : 0;
  const double width = std::max(230.0, room + side + name_height);
  const double height = name_height + side + room + 8 + kColorBarHeight;

  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const std::string below_name = input.name, above_name = input.above_name,
                    scale_label = input.scale_label;
  return make_page(parts, {width, height}, theme, [=](Canvas& canvas, const Rect& body) {
    const Rect place = canvas.snapped({body.x + room, body.y + name_height, side, side});
    canvas.heatmap(place, *map, scale.kind, level_colors(scale, theme));
    canvas.frame(place, {theme.frame, theme.hair_width});
    const bool grouped = labels.size() < count;
    double written = -1e9;  // where the last label stands: those that would touch are left out
    for (const Label& one : labels) {
      const double begin = one.begin / static_cast<double>(count);
      const double middle = (one.begin + one.size / 2) / static_cast<double>(count);
      if (grouped && one.begin > 0) {
        const Stroke line = {theme.muted.with_alpha(0.55), 0.4};
        canvas.line({place.x, place.y + begin * place.height},
                    {place.right(), place.y + begin * place.height}, line);
        canvas.line({place.x + begin * place.width, place.y},
                    {place.x + begin * place.width, place.bottom()}, line);
      }
      if (grouped && middle * place.height - written < label.size) continue;
      written = middle * place.height;
      canvas.text({place.x - 2.5, place.y + middle * place.height}, one.text, label);
      TextStyle turned = label;
      turned.angle = 90;
      canvas.text({place.x + middle * place.width, place.bottom() + 2.5}, one.text, turned);
    }
    if (two) {
      canvas.line({place.x, place.y}, {place.right(), place.bottom()},
                  {theme.text, theme.hair_width});
      const TextStyle style = {.size = theme.text_size,
                               .color = theme.text,
                               .bold = true,
                               .align = Align::kRight,
                               .max_width = place.width / 2 - 5};
      canvas.text({place.right(), place.y - 3.5}, "above: " + above_name, style);
      TextStyle left = style;
      left.align = Align::kLeft;
      canvas.text({place.x, place.y - 3.5}, "below: " + below_name, left);
    }
    const double top = place.bottom() + room + 8;
    const double bar = color_bar_width(scale, scale_label, theme);
    draw_color_bar(canvas, {body.x, top}, bar, scale, scale_label, theme);
    if (undefined)
      draw_legend(canvas, {body.x + bar + 12, top - 1.5}, body.width - bar - 12,
                  {{"undefined", theme.undefined}}, theme);
  });
}

}  // namespace filigree::figure

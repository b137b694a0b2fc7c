#include "figure/page.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "filigree/figures.h"

namespace filigree::figure {

namespace {

constexpr double kTitleGap = 7;
constexpr double kCaptionGap = 7;
constexpr double kSwatch = 7;
constexpr double kSwatchGap = 3.5;
constexpr double kEntryGap = 11;

TextStyle title_style(const Theme& theme, double width) {
  return {.size = theme.title_size,
          .color = theme.text,
          .bold = true,
          .vertical = VerticalAlign::kTop,
          .max_width = width};
}

TextStyle caption_style(const Theme& theme, double width, int lines) {
  return {.size = theme.text_size,
          .color = theme.muted,
          .vertical = VerticalAlign::kTop,
          .max_width = width,
          .max_lines = lines};
}

// Where each entry of a legend starts, relative to its corner.
std::vector<Point> legend_places(const std::vector<LegendEntry>& entries, double width,
                                 const Theme& theme) {
  std::vector<Point> places;
  Point at;
  for (const LegendEntry& entry : entries) {
    const double swatch = entry.line ? 2 * kSwatch : kSwatch;
    const double needed =
        swatch + kSwatchGap + text_size(entry.label, {.size = theme.text_size}).width;
    if (at.x > 0 && at.x + needed > width) at = {0, at.y + line_height(theme.text_size)};
    places.push_back(at);
    at.x += needed + kEntryGap;
  }
  return places;
}

}  // namespace

Figure make_page(const PageParts& parts, Size body_size, const Theme& theme,
                 std::function<void(Canvas&, const Rect&)> draw_body) {
  const double width = body_size.width;
  const double title_height = parts.title.empty() ? 0 : line_height(theme.title_size) + kTitleGap;
  double height = kPageMargin + title_height;
  const Rect body = {kPageMargin, height, width, body_size.height};
  height += body_size.height;
  std::vector<double> caption_tops;
  for (const std::string& caption : parts.captions) {
    if (caption_tops.empty()) height += kCaptionGap;
    caption_tops.push_back(height);
    height += text_size(caption, caption_style(theme, width, parts.caption_lines)).height + 2;
  }
  height += kPageMargin;
  auto draw = [=, draw_body = std::move(draw_body)](Canvas& canvas) {
    canvas.text({kPageMargin, kPageMargin}, parts.title, title_style(theme, width));
    draw_body(canvas, body);
    for (std::size_t i = 0; i < parts.captions.size(); ++i)
      canvas.text({kPageMargin, caption_tops[i]}, parts.captions[i],
                  caption_style(theme, width, parts.caption_lines));
  };
  return {parts.title, {width + 2 * kPageMargin, height}, theme.page, std::move(draw)};
}

double legend_height(const std::vector<LegendEntry>& entries, double width, const Theme& theme) {
  if (entries.empty()) return 0;
  return legend_places(entries, width, theme).back().y + line_height(theme.text_size);
}

void draw_legend(Canvas& canvas, Point corner, double width,
                 const std::vector<LegendEntry>& entries, const Theme& theme) {
  const std::vector<Point> places = legend_places(entries, width, theme);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    const double left = corner.x + places[i].x;
    const double middle = corner.y + places[i].y + line_height(theme.text_size) / 2;
    double text_left = left + kSwatch + kSwatchGap;
    if (entry.line) {
      canvas.line({left, middle}, {left + 2 * kSwatch, middle},
                  {entry.color, theme.line_width * 1.3,
                   entry.dashed ? std::vector<double>{3, 2} : std::vector<double>{}});
      text_left += kSwatch;
    } else {
      canvas.fill({left, middle - kSwatch / 2, kSwatch, kSwatch}, entry.color);
    }
    canvas.text({text_left, middle}, entry.label,
                {.size = theme.text_size,
                 .color = theme.text,
                 .vertical = VerticalAlign::kMiddle,
                 .max_width = std::max(1.0, corner.x + width - text_left)});
  }
}

double color_bar_width(const ColorScale& scale, std::string_view label, const Theme& theme) {
  const double bar = scale.kind == ScaleKind::kMagnitude ? 110 : 130;
  if (label.empty()) return bar;
  return bar + text_size(label, {.size = theme.text_size}).width + 10;
}

void draw_color_bar(Canvas& canvas, Point corner, double width, const ColorScale& scale,
                    std::string_view label, const Theme& theme) {
  constexpr double kBarHeight = 7;
  constexpr double kEndRoom = 4;  // the label of the end is centred on it
  const TextStyle tick = {.size = theme.small_size,
                          .color = theme.muted,
                          .align = Align::kCenter,
                          .vertical = VerticalAlign::kTop};
  double left = corner.x;
  if (!label.empty()) {
    const TextStyle name = {
        .size = theme.text_size, .color = theme.text, .vertical = VerticalAlign::kMiddle};
    canvas.text({left, corner.y + kBarHeight / 2}, label, name);
    left += text_size(label, name).width + 10;
  }
  const double right = corner.x + width - kEndRoom;
  const Stroke border = {theme.frame, theme.hair_width};
  const LevelColors colors = level_colors(scale, theme);
  const auto tick_at = [&](double x, const std::string& text) {
    canvas.text({x, corner.y + kBarHeight + 0.5}, text, tick);
  };
  // Levels `first` to `last` over a stretch of the bar.
  const auto stretch = [&](double from, double to, int first, int last, const LevelColors& drawn) {
    LevelMap ramp = {1, static_cast<std::size_t>(last - first + 1), {}};
    for (int level = first; level <= last; ++level)
      ramp.levels.push_back(static_cast<std::uint8_t>(level));
    const Rect place = canvas.snapped({from, corner.y, to - from, kBarHeight});
    // Merging must not prefer one end: the bar is drawn as a scale of magnitudes.
    canvas.heatmap(place, ramp, ScaleKind::kMagnitude, drawn);
    canvas.frame(place, border);
  };
  const auto zero = [&](double x) {
    const Rect place = canvas.snapped({x, corner.y, kBarHeight, kBarHeight});
    canvas.fill(place, theme.empty);
    canvas.frame(place, border);
    tick_at(x + kBarHeight / 2, "0");
  };
  const std::string end = format_number(scale.end, 2);
  const auto trimmed = [](std::string text) {  // "1.0" is "1"
    if (text.find('.') != std::string::npos) {
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
    }
    return text;
  };
  if (scale.kind == ScaleKind::kMagnitude) {
    zero(left);
    const double start = left + kBarHeight + 4;
    stretch(start, right, 1, 255, colors);
    tick_at(start + 2, ">0");
    tick_at((start + right) / 2, trimmed(format_number(scale.end / 2, 2)));
    tick_at(right, trimmed(end));
  } else {
    left += kEndRoom + 2;
    const double middle = (left + right) / 2;
    // Level 128 is an undefined value: zero has the colour between its neighbours.
    LevelColors through = colors;
    through[128] = colors[0];
    stretch(left, right, 1, 255, through);
    tick_at(middle, "0");
    tick_at(left, "\u2212" + trimmed(end));
    tick_at(right, "+" + trimmed(end));
  }
}

void draw_panel(Canvas& canvas, const Rect& rect, std::string_view title, const Theme& theme) {
  canvas.rounded(rect, 6, theme.panel, {theme.panel_border, 0.8});
  canvas.text({rect.x + kPanelPadding, rect.y + kPanelPadding / 2 + kPanelTitleHeight / 2}, title,
              {.size = theme.text_size + 1.5,
               .color = theme.text,
               .bold = true,
               .vertical = VerticalAlign::kMiddle,
               .max_width = rect.width - 2 * kPanelPadding});
}

}  // namespace filigree::figure

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

constexpr double kPanelWidth = 350, kOnePanelWidth = 440, kCarriedPanelGap = 10;
constexpr double kMapsHeight = 236;  // of the area that maps share
constexpr double kLargestMap = 96, kMapGap = 7, kMapLabel = 9;
constexpr double kAxisRoom = 13;  // beside the maps, for Q and K
constexpr double kChipHeight = 21, kChipGap = 5;
constexpr double kTokenHeight = 12, kNumberHeight = 8, kLineGap = 5;
constexpr std::size_t kMark = 6;  // category of the theme

struct CarriedPreparedMap {
  HeadId head = {};
  LevelMap map = {};
  double share = 0;
};

// Where the maps of a panel stand.
struct MapGrid {
  std::size_t columns = 1;
  double side = 0;

  Point corner(std::size_t i) const {
    return {static_cast<double>(i % columns) * (side + kMapGap),
            static_cast<double>(i / columns) * (side + kMapGap + kMapLabel)};
  }
};

// The largest maps that fit; of equally large ones those that leave the fewest places empty, and of
// these the widest rows.
MapGrid map_grid(std::size_t count, double width, double height) {
  MapGrid best;
  std::size_t best_empty = 0;
  for (std::size_t columns = 1; columns <= std::max<std::size_t>(1, count); ++columns) {
    const std::size_t rows = (count + columns - 1) / columns;
    const double side =
        std::min({kLargestMap, (width + kMapGap) / static_cast<double>(columns) - kMapGap,
                  (height + kMapGap) / static_cast<double>(std::max<std::size_t>(1, rows)) -
                      kMapGap - kMapLabel});
    const std::size_t empty = rows * columns - count;
    if (side < best.side || (side == best.side && empty > best_empty)) continue;
    best = {columns, side};
    best_empty = empty;
  }
  best.side = std::max(best.side, 4.0);
  return best;
}

// Things of given widths in lines that are not wider than `width`; where each begins.
struct Flow {
  std::vector<Point> places;  // y counts lines
  std::size_t lines = 0;
};

Flow flow(const std::vector<double>& widths, double width, double gap) {
  Flow result;
  double x = 0;
  for (const double one : widths) {
    if (result.lines == 0 || x + one > width) x = 0, ++result.lines;
    result.places.push_back({x, static_cast<double>(result.lines - 1)});
    x += one + gap;
  }
  return result;
}

struct PlacedCarriedPanel {
  CarriedPanel input;
  std::vector<CarriedPreparedMap> maps;
  MapGrid grid;
  Flow chips, tokens;
  std::vector<double> chip_widths, token_widths;
  double answer_width = 0;
};

struct CarriedDrawing {
  CarriedPairFigure input;
  std::vector<PlacedCarriedPanel> panels;
  double width = 0, chips_height = 0, sentence_height = 0, height = 0;
};

TextStyle chip_style(const Theme& theme, bool bold) {
  return {.size = bold ? theme.text_size : theme.small_size,
          .color = bold ? theme.text : theme.muted,
          .bold = bold,
          .align = Align::kCenter,
          .vertical = VerticalAlign::kMiddle,
          .max_width = 110};
}

TextStyle token_text_style(const Theme& theme) {
  return {.size = theme.text_size + 0.5,
          .color = theme.text,
          .align = Align::kCenter,
          .vertical = VerticalAlign::kMiddle,
          .max_width = 90};
}

std::string layers_text(const ModulatingToken& token) {
  const std::string layers =
      token.first_layer == token.last_layer
          ? fmt::format("layer {}", token.first_layer)
          : fmt::format("layers {}\u2013{}", token.first_layer, token.last_layer);
  return fmt::format("{}, {:.0f} %", layers, 100 * token.share);
}

std::string token_label(const CarriedPairFigure& input, std::size_t position) {
  return fmt::format("{} {}", position, visible_token(input.tokens[position]));
}

void check_carried(const CarriedPairFigure& input) {
  const std::size_t n = input.tokens.size();
  require(!input.panels.empty(), "carried pair: there is no panel to draw");
  require(input.query < n && input.key <= input.query,
          "carried pair: key {} and query {} are no pair of {} tokens", input.key, input.query, n);
  for (const CarriedPanel& panel : input.panels) {
    const std::string name = fmt::format("carried pair: '{}'", printable(panel.title));
    for (const CarryingMap& map : panel.maps)
      require(map.weights.size() == n * n, "{}: the map of {} has {} cells for {} tokens", name,
              head_name(map.head), map.weights.size(), n);
    for (const ModulatingToken& token : panel.modulated_by)
      require(token.position < n && std::isfinite(token.share),
              "{}: token {} of {} modulates with {}", name, token.position, n, token.share);
  }
}

PlacedCarriedPanel prepared(const CarriedPairFigure& input, const CarriedPanel& panel, double width,
                            const Theme& theme) {
  const std::size_t n = input.tokens.size();
  PlacedCarriedPanel result;
  result.input = panel;
  for (const CarryingMap& map : panel.maps)
    result.maps.push_back(
        {map.head, make_levels(map.weights, {n, n, true}, {}, head_name(map.head)), map.share});
  const double inside = width - 2 * kPanelPadding;
  result.grid = map_grid(result.maps.size(), inside - kAxisRoom, kMapsHeight - kAxisRoom);
  for (const ModulatingToken& token : panel.modulated_by)
    result.chip_widths.push_back(
        std::max(text_size(token_label(input, token.position), chip_style(theme, true)).width,
                 text_size(layers_text(token), chip_style(theme, false)).width) +
        10);
  result.chips = flow(result.chip_widths, inside, kChipGap);
  for (const std::string& token : input.tokens)
    result.token_widths.push_back(
        std::max(8.0, text_size(visible_token(token), token_text_style(theme)).width + 4));
  result.answer_width =
      panel.answer.empty() ? 0
                           : text_size(visible_token(panel.answer), chip_style(theme, true)).width +
                                 26 + text_size(panel.note, chip_style(theme, false)).width;
  std::vector<double> words = result.token_widths;
  if (result.answer_width > 0) words.push_back(result.answer_width);
  result.tokens = flow(words, inside, 2);
  return result;
}

void draw_maps(Canvas& canvas, const CarriedDrawing& drawing, const PlacedCarriedPanel& panel,
               Point corner, const Theme& theme) {
  const std::size_t n = drawing.input.tokens.size();
  const TextStyle small = {.size = std::clamp(panel.grid.side * 0.16, 3.4, theme.small_size),
                           .color = theme.text,
                           .align = Align::kCenter,
                           .vertical = VerticalAlign::kBottom,
                           .max_width = panel.grid.side + kMapGap - 1};
  const Color mark = theme.category(kMark);
  for (std::size_t i = 0; i < panel.maps.size(); ++i) {
    const CarriedPreparedMap& map = panel.maps[i];
    const Point at = panel.grid.corner(i);
    const Rect rect = canvas.snapped({corner.x + kAxisRoom + at.x, corner.y + kMapLabel + at.y,
                                      panel.grid.side, panel.grid.side});
    const bool room = panel.grid.side > 40;
    canvas.text({rect.center().x, rect.y - 1.5},
                room ? fmt::format("{}  {:.0f} %", head_name(map.head), 100 * map.share)
                     : head_name(map.head),
                small);
    canvas.heatmap(rect, map.map, ScaleKind::kMagnitude, level_colors({}, theme));
    canvas.frame(rect, {theme.frame, theme.hair_width});
    const double cell = panel.grid.side / static_cast<double>(n);
    const Rect marked = {rect.x + cell * static_cast<double>(drawing.input.key),
                         rect.y + cell * static_cast<double>(drawing.input.query), cell, cell};
    canvas.frame(cell < 3 ? marked.inset((cell - 3) / 2) : marked,
                 {mark, std::clamp(cell * 0.16, 0.7, 1.4)});
    if (i != 0) continue;
    // Keys to the right, queries downwards.
    const TextStyle axis = {.size = theme.small_size,
                            .color = theme.muted,
                            .bold = true,
                            .align = Align::kCenter,
                            .vertical = VerticalAlign::kMiddle};
    canvas.text({rect.x - 6, rect.y + 4}, "Q", axis);
    canvas.line({rect.x - 6, rect.y + 9}, {rect.x - 6, rect.bottom()}, {theme.muted, 0.6});
    const Point tip = {rect.x - 6, rect.bottom()};
    canvas.polygon(
        std::array<Point, 3>{Point{tip.x - 1.6, tip.y - 3}, {tip.x + 1.6, tip.y - 3}, tip},
        theme.muted);
    if (panel.grid.columns < panel.maps.size() && panel.grid.side < 30) continue;
    const double y = rect.bottom() + 4.5;
    canvas.text({rect.x + 3, y}, "K", axis);
    canvas.line({rect.x + 8, y}, {rect.right(), y}, {theme.muted, 0.6});
    const Point end = {rect.right(), y};
    canvas.polygon(
        std::array<Point, 3>{Point{end.x - 3, end.y - 1.6}, {end.x - 3, end.y + 1.6}, end},
        theme.muted);
  }
}

void draw_chips(Canvas& canvas, const CarriedDrawing& drawing, const PlacedCarriedPanel& panel,
                Point corner, const Theme& theme) {
  for (std::size_t i = 0; i < panel.input.modulated_by.size(); ++i) {
    const ModulatingToken& token = panel.input.modulated_by[i];
    const Rect rect = {corner.x + panel.chips.places[i].x,
                       corner.y + panel.chips.places[i].y * (kChipHeight + kChipGap),
                       panel.chip_widths[i], kChipHeight};
    canvas.rounded(rect, 3, mix(theme.page, theme.magnitude.at(0.6), 0.10 + 0.35 * token.share),
                   {theme.frame, theme.hair_width});
    canvas.text({rect.center().x, rect.y + 7}, token_label(drawing.input, token.position),
                chip_style(theme, true));
    canvas.text({rect.center().x, rect.y + 15.5}, layers_text(token), chip_style(theme, false));
  }
}

void draw_sentence(Canvas& canvas, const CarriedDrawing& drawing, const PlacedCarriedPanel& panel,
                   Point corner, const Theme& theme) {
  const CarriedPairFigure& input = drawing.input;
  const double line = kTokenHeight + kNumberHeight + kLineGap;
  const Color mark = theme.category(kMark);
  for (std::size_t p = 0; p < input.tokens.size(); ++p) {
    const Rect rect = {corner.x + panel.tokens.places[p].x,
                       corner.y + panel.tokens.places[p].y * line, panel.token_widths[p],
                       kTokenHeight};
    double share = 0;
    for (const ModulatingToken& token : panel.input.modulated_by)
      if (token.position == p) share = token.share;
    if (share > 0) canvas.fill(rect, mix(theme.page, theme.magnitude.at(0.6), 0.10 + 0.35 * share));
    if (p == input.key || p == input.query) canvas.frame(rect, {mark, 0.9});
    canvas.text(rect.center(), visible_token(input.tokens[p]), token_text_style(theme));
    canvas.text({rect.center().x, rect.bottom() + kNumberHeight / 2}, std::to_string(p),
                {.size = theme.small_size - 0.5,
                 .color = p == input.key || p == input.query ? mark : theme.muted,
                 .bold = p == input.key || p == input.query,
                 .align = Align::kCenter,
                 .vertical = VerticalAlign::kMiddle});
  }
  if (panel.answer_width <= 0) return;
  const Point at = {corner.x + panel.tokens.places.back().x,
                    corner.y + panel.tokens.places.back().y * line};
  const double middle = at.y + kTokenHeight / 2;
  canvas.line({at.x + 2, middle}, {at.x + 11, middle}, {theme.text, 0.8});
  canvas.polygon(
      std::array<Point, 3>{
          Point{at.x + 10, middle - 2}, {at.x + 10, middle + 2}, {at.x + 14, middle}},
      theme.text);
  const std::string answer = visible_token(panel.input.answer);
  const double width = text_size(answer, chip_style(theme, true)).width + 7;
  const Rect box = {at.x + 15, at.y - 0.5, width, kTokenHeight + 1};
  canvas.rounded(box, 3, theme.page, {theme.text, 0.8});
  canvas.text(box.center(), answer, chip_style(theme, true));
  TextStyle note = chip_style(theme, false);
  note.align = Align::kLeft;
  canvas.text({box.right() + 3, middle}, panel.input.note, note);
}

void draw_one(Canvas& canvas, const CarriedDrawing& drawing, const PlacedCarriedPanel& panel,
              const Rect& rect, const Theme& theme) {
  draw_panel(canvas, rect, panel.input.title, theme);
  const double left = rect.x + kPanelPadding;
  double y = rect.y + kPanelTitleHeight + kPanelPadding;
  draw_maps(canvas, drawing, panel, {left, y}, theme);
  y += kMapsHeight;
  if (!panel.input.modulated_by.empty())
    canvas.text({left, y + 5}, "modulated at 80 % by",
                {.size = theme.text_size,
                 .color = theme.muted,
                 .italic = true,
                 .vertical = VerticalAlign::kMiddle});
  y += 13;
  draw_chips(canvas, drawing, panel, {left, y}, theme);
  y += drawing.chips_height + 8;
  draw_sentence(canvas, drawing, panel, {left, y}, theme);
}

}  // namespace

Figure make_figure(const CarriedPairFigure& input, const Theme& theme) {
  check_carried(input);
  const auto drawing = std::make_shared<CarriedDrawing>();
  drawing->input = input;
  drawing->width = input.panels.size() == 1 ? kOnePanelWidth : kPanelWidth;
  for (const CarriedPanel& panel : input.panels) {
    drawing->panels.push_back(prepared(input, panel, drawing->width, theme));
    const PlacedCarriedPanel& one = drawing->panels.back();
    drawing->chips_height = std::max(
        drawing->chips_height, static_cast<double>(one.chips.lines) * (kChipHeight + kChipGap));
    drawing->sentence_height =
        std::max(drawing->sentence_height,
                 static_cast<double>(one.tokens.lines) * (kTokenHeight + kNumberHeight + kLineGap));
  }
  drawing->height = kPanelTitleHeight + kPanelPadding + kMapsHeight + 13 + drawing->chips_height +
                    8 + drawing->sentence_height + kPanelPadding;
  const auto count = static_cast<double>(input.panels.size());
  const double width = count * (drawing->width + kCarriedPanelGap) - kCarriedPanelGap;
  PageParts parts = {.title = input.title, .caption_lines = 4};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  return make_page(parts, {width, drawing->height + 5 + kColorBarHeight}, theme,
                   [=](Canvas& canvas, const Rect& body) {
                     for (std::size_t i = 0; i < drawing->panels.size(); ++i)
                       draw_one(
                           canvas, *drawing, drawing->panels[i],
                           {body.x + static_cast<double>(i) * (drawing->width + kCarriedPanelGap),
                            body.y, drawing->width, drawing->height},
                           theme);
                     draw_color_bar(canvas, {body.x, body.y + drawing->height + 5}, 160, {},
                                    "attention weight", theme);
                   });
}

}  // namespace filigree::figure

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kTokenPageWidth = 516, kTokenHalfWidth = 352, kWidestPanel = 720;
constexpr double kTokenPanelGap = 10;
constexpr double kTokenLayerRoom = 17;  // left of the rows, for "L11"
constexpr double kRightRoom = 8;
constexpr double kAnswerRoom = 27;                            // above the rows
constexpr double kTokenThinnest = 0.3, kTokenThickest = 3.4;  // of lines
constexpr double kLeastMlp = 1.8, kLargestMlp = 8;            // sides of squares
constexpr double kTokenLabelSize = 5.2, kLabelDistance = 5;   // of heads; between tokens' labels
constexpr std::size_t kMostLabels = 40;
constexpr double kLabelledShare = 0.02;             // of the strongest line of the panel
constexpr std::size_t kTokenAgainst = 6, kMlp = 4;  // categories of the theme

// What all panels share.
struct Frame {
  double width = 0, height = 0;  // of a panel
  double first = 0, step = 0;    // x of the first token, between tokens, from the panel's left
  double top = 0, pitch = 0;     // y of the row above the last layer; between rows
  double floor = 0;              // y of the row below layer 0
  std::size_t layers = 0;
  double most_line = 0, most_mlp = 0;

  double x(std::size_t token) const { return first + static_cast<double>(token) * step; }
  double y(std::size_t row) const { return floor - static_cast<double>(row) * pitch; }
};

struct PlacedTokenPanel {
  TokenPanel input;
  std::vector<TokenLine> lines;
  std::string detail;  // below the title: edges, lines, what is drawn
};

double share(double score, double most) { return most > 0 ? std::sqrt(std::abs(score) / most) : 0; }

void check_input(const TokenCircuit& input) {
  require(!input.panels.empty(), "token circuit: there is no panel to draw");
  require(!input.tokens.empty(), "token circuit: there are no tokens");
  require(input.layers > 0, "token circuit: there are no layers");
  require(input.roles.empty() || input.roles.size() == input.tokens.size(),
          "token circuit: {} roles for {} tokens", input.roles.size(), input.tokens.size());
  for (const TokenPanel& panel : input.panels) {
    const std::string name = fmt::format("token circuit: '{}'", printable(panel.title));
    for (const TokenEdge& edge : panel.edges) {
      require(edge.head.layer >= 0 && edge.head.head >= 0 &&
                  static_cast<std::size_t>(edge.head.layer) < input.layers,
              "{}: an edge is of {}, but there are {} layers", name, head_name(edge.head),
              input.layers);
      require(edge.query < input.tokens.size() && edge.key <= edge.query,
              "{}: an edge of {} runs from token {} to token {} of {}", name, head_name(edge.head),
              edge.key, edge.query, input.tokens.size());
      require(std::isfinite(edge.score), "{}: an edge of {} has the score {}", name,
              head_name(edge.head), edge.score);
    }
    for (const TokenMlp& mlp : panel.mlps)
      require(
          mlp.layer < input.layers && mlp.position < input.tokens.size() &&
              std::isfinite(mlp.score),
          "{}: the MLP of layer {} at token {} with score {} is none of {} layers and {} tokens",
          name, mlp.layer, mlp.position, mlp.score, input.layers, input.tokens.size());
  }
}

std::string counted(std::size_t count, const char* unit) {
  return fmt::format("{} {}{}", with_thousands(count), unit, count == 1 ? "" : "s");
}

std::string detail_of(std::size_t edges, std::size_t lines) {
  std::string text;
  if (lines > kMostLines)
    text = fmt::format("drawn: the {} strongest of {} lines", with_thousands(kMostLines),
                       with_thousands(lines));
  else if (lines < edges)
    text = fmt::format("drawn as {}", counted(lines, "line"));
  else
    return fmt::format("all {} drawn", counted(edges, "edge"));
  if (lines < edges) text += "; a line: all its heads of one layer between two tokens";
  return text;
}

using BezierCurve = std::array<Point, 4>;

// Leaves the key and reaches the query vertically; what stays at its token bulges, to be told from
// the stream.
BezierCurve curve_of(const Frame& frame, const TokenLine& line, Point corner) {
  const Point from = {corner.x + frame.x(line.key), corner.y + frame.y(line.layer)};
  const Point to = {corner.x + frame.x(line.query), corner.y + frame.y(line.layer + 1)};
  const double bulge = line.key == line.query ? -std::min(8.0, 0.6 * frame.step) : 0;
  return {from,
          {from.x + bulge, from.y - 0.55 * frame.pitch},
          {to.x + bulge, to.y + 0.55 * frame.pitch},
          to};
}

Point point_on(const BezierCurve& curve, double t) {
  const double u = 1 - t;
  const std::array<double, 4> part = {u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t};
  Point point;
  for (std::size_t i = 0; i < part.size(); ++i)
    point.x += part[i] * curve[i].x, point.y += part[i] * curve[i].y;
  return point;
}

// Names of heads where they fit, those of the strongest lines first, with their weights where these
// fit too.
class Labels {
 public:
  Labels(Canvas& canvas, const Rect& area, const Theme& theme)
      : canvas_(canvas), area_(area), theme_(theme) {}

  void keep_free(const Rect& rect) { taken_.push_back(rect); }

  void add(const BezierCurve& curve, const TokenLine& line, const Color& color) {
    if (!add(curve, name_with_attention(line), color)) add(curve, name_of(line), color);
  }

 private:
  bool add(const BezierCurve& curve, const std::string& text, const Color& color) {
    const TextStyle style = {.size = kTokenLabelSize,
                             .color = mix(color, theme_.text, 0.45),
                             .bold = true,
                             .align = Align::kCenter,
                             .vertical = VerticalAlign::kMiddle};
    const double width = text_size(text, style).width + 2.6, height = kTokenLabelSize * 1.02;
    for (const double part : {0.5, 0.38, 0.62, 0.28, 0.72}) {
      const Point at = point_on(curve, part);
      const Rect rect = {at.x - width / 2, at.y - height / 2, width, height};
      if (rect.x < area_.x || rect.right() > area_.right() ||
          std::any_of(taken_.begin(), taken_.end(),
                      [&](const Rect& other) { return other.overlaps(rect); }))
        continue;
      taken_.push_back(rect);
      canvas_.fill(rect, theme_.panel.with_alpha(0.82));
      canvas_.text(at, text, style);
      return true;
    }
    return false;
  }

  Canvas& canvas_;
  Rect area_;  // what they stay within, from left to right
  const Theme& theme_;
  std::vector<Rect> taken_;
};

// Which tokens are named: all where there is room, else those with roles and with the most at them.
std::vector<bool> named_tokens(const TokenCircuit& input, const Frame& frame) {
  std::vector<double> weight(input.tokens.size(), 0.0);
  for (const TokenPanel& panel : input.panels)
    for (const TokenEdge& edge : panel.edges)
      weight[edge.query] += std::abs(edge.score), weight[edge.key] += std::abs(edge.score);
  std::vector<std::size_t> order(input.tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    return std::pair(input.roles.empty() || input.roles[i].empty(), -weight[i]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<bool> named(input.tokens.size(), false);
  const auto reach = static_cast<std::size_t>(std::ceil(kLabelDistance / frame.step));
  for (const std::size_t i : order) {
    bool free = true;
    for (std::size_t j = i < reach ? 0 : i - reach; j < std::min(named.size(), i + reach + 1); ++j)
      free = free && !(named[j] && std::abs(frame.x(i) - frame.x(j)) < kLabelDistance);
    named[i] = free;
  }
  return named;
}

TextStyle token_style(const Frame& frame, const Theme& theme) {
  return {.size = std::clamp(frame.step * 0.6, 4.4, theme.text_size),
          .color = theme.muted,
          .align = Align::kRight,
          .vertical = VerticalAlign::kMiddle,
          .angle = 90,
          .max_width = 58};
}

TextStyle role_style(const Theme& theme) {
  return {.size = 5.6,
          .color = theme.text,
          .bold = true,
          .align = Align::kCenter,
          .vertical = VerticalAlign::kMiddle};
}

constexpr double kRoleRow = 7.5;

// Roles stand below their tokens' streams, in as many rows as keep them apart.
std::vector<std::size_t> role_rows(const TokenCircuit& input, const Frame& frame,
                                   const Theme& theme) {
  std::vector<std::size_t> rows(input.tokens.size(), 0);
  std::vector<double> ends;
  for (std::size_t i = 0; i < input.roles.size(); ++i) {
    if (input.roles[i].empty()) continue;
    const double half = text_size(input.roles[i], role_style(theme)).width / 2 + 1.2;
    std::size_t row = 0;
    while (row < ends.size() && ends[row] > frame.x(i) - half) ++row;
    if (row == ends.size()) ends.push_back(0);
    ends[row] = frame.x(i) + half;
    rows[i] = row + 1;
  }
  return rows;
}

struct TokenDrawing {
  TokenCircuit input;
  std::vector<PlacedTokenPanel> panels;
  Frame frame;
  std::vector<bool> named;
  std::vector<std::size_t> roles;  // rows, from 1; 0: none
  double role_height = 0;
};

void draw_streams(Canvas& canvas, const TokenDrawing& drawing, Point corner, const Theme& theme) {
  const Frame& frame = drawing.frame;
  const TokenCircuit& input = drawing.input;
  const double left = corner.x + frame.first - 4, right = corner.x + frame.width - kRightRoom + 3;
  for (std::size_t row = 0; row <= frame.layers; ++row) {
    const double y = corner.y + frame.y(row);
    canvas.line({left, y}, {right, y}, {theme.grid, theme.hair_width});
    // Where rows are close, every second or fifth layer is named.
    const std::size_t every = frame.pitch >= 9 ? 1 : frame.pitch >= 4.5 ? 2 : 5;
    if (row < frame.layers && row % every == 0)
      canvas.text(
          {corner.x + kPanelPadding, y - frame.pitch / 2},
          layer_name(static_cast<std::int64_t>(row)),
          {.size = theme.small_size, .color = theme.muted, .vertical = VerticalAlign::kMiddle});
  }
  for (std::size_t i = 0; i < input.tokens.size(); ++i) {
    const double x = corner.x + frame.x(i);
    const bool role = drawing.roles[i] > 0;
    const bool last = i + 1 == input.tokens.size();
    const Color color = last ? theme.muted.with_alpha(0.7) : role ? theme.frame : theme.grid;
    canvas.line({x, corner.y + frame.floor}, {x, corner.y + frame.top - (last ? 7 : 0)},
                {color, last ? 0.9 : theme.hair_width});
    if (role)
      canvas.text({x, corner.y + frame.floor + 1 +
                          (static_cast<double>(drawing.roles[i]) - 0.5) * kRoleRow},
                  input.roles[i], role_style(theme));
    if (!drawing.named[i]) continue;
    TextStyle style = token_style(frame, theme);
    if (role) style.color = theme.text;
    canvas.text({x, corner.y + frame.floor + 3.5 + drawing.role_height},
                visible_token(input.tokens[i]), style);
  }
}

void draw_answer(Canvas& canvas, const TokenDrawing& drawing, const PlacedTokenPanel& panel,
                 Point corner, const Theme& theme) {
  if (panel.input.answer.empty()) return;
  const Frame& frame = drawing.frame;
  const TextStyle style = {.size = theme.text_size,
                           .color = theme.text,
                           .bold = true,
                           .align = Align::kCenter,
                           .vertical = VerticalAlign::kMiddle,
                           .max_width = 90};
  const std::string answer = visible_token(panel.input.answer);
  const double width = text_size(answer, style).width + 9;
  const double stream = corner.x + frame.x(drawing.input.tokens.size() - 1);
  const double right = std::min(stream + width / 2, corner.x + frame.width - 3);
  const Rect box = {right - width, corner.y + frame.top - kAnswerRoom + 7, width, 13};
  canvas.rounded(box, 3.2, theme.page, {theme.text, 0.8});
  canvas.text(box.center(), answer, style);
  if (panel.input.note.empty()) return;
  canvas.text({box.x - 5, box.center().y}, panel.input.note,
              {.size = theme.small_size,
               .color = theme.muted,
               .align = Align::kRight,
               .vertical = VerticalAlign::kMiddle,
               .max_width = std::max(1.0, box.x - corner.x - 12)});
}

void draw_panel_body(Canvas& canvas, const TokenDrawing& drawing, std::size_t index, Point corner,
                     const Theme& theme) {
  const PlacedTokenPanel& panel = drawing.panels[index];
  const Frame& frame = drawing.frame;
  draw_streams(canvas, drawing, corner, theme);
  const Color own = theme.category(index), against = theme.category(kTokenAgainst);
  const std::size_t count = std::min(panel.lines.size(), kMostLines);
  // Weak lines of many are a haze, weak lines of few are still seen.
  const double faintest = std::clamp(
      0.45 * std::sqrt(60.0 / static_cast<double>(std::max<std::size_t>(count, 1))), 0.13, 0.45);
  for (std::size_t i = count; i-- > 0;) {  // the strongest on top
    const TokenLine& line = panel.lines[i];
    const double part = share(line.weight, frame.most_line);
    const Color color = line.score < 0 ? against : own;
    const BezierCurve curve = curve_of(frame, line, corner);
    canvas.curve(curve, {color.with_alpha(faintest + (0.92 - faintest) * part),
                         kTokenThinnest + (kTokenThickest - kTokenThinnest) * part});
    canvas.dots(std::array{curve.back()}, 0.55 + 0.35 * kTokenThickest * part,
                color.with_alpha(std::min(1.0, faintest + 0.2 + 0.7 * part)));
  }
  const double left = corner.x + kPanelPadding + kTokenLayerRoom;
  Labels labels(canvas, {left, corner.y, corner.x + frame.width - 2 - left, frame.height}, theme);
  for (const TokenMlp& mlp : panel.input.mlps) {
    const double side = kLeastMlp + (kLargestMlp - kLeastMlp) * share(mlp.score, frame.most_mlp);
    const Point at = {corner.x + frame.x(mlp.position), corner.y + frame.y(mlp.layer + 1)};
    const Rect square = {at.x - side / 2, at.y - side / 2, side, side};
    canvas.rounded(
        square, side * 0.15, theme.category(kMlp),
        {mlp.score < 0 ? against : theme.text.with_alpha(0.65), mlp.score < 0 ? 1 : 0.5});
    labels.keep_free(square);
  }
  for (std::size_t i = 0; i < std::min(count, kMostLabels); ++i) {
    const TokenLine& line = panel.lines[i];
    if (line.weight < kLabelledShare * panel.lines[0].weight) break;
    labels.add(curve_of(frame, line, corner), line, line.score < 0 ? against : own);
  }
  draw_answer(canvas, drawing, panel, corner, theme);
}

// Below the panels: lines of three widths and squares of two sizes with what they stand for, and
// the colour of what works against the answer.
void draw_key(Canvas& canvas, Point corner, const TokenDrawing& drawing, const Theme& theme) {
  const double middle = corner.y + line_height(theme.text_size) / 2;
  const TextStyle style = {
      .size = theme.text_size, .color = theme.text, .vertical = VerticalAlign::kMiddle};
  double x = corner.x;
  const auto word = [&](const std::string& text, double gap) {
    canvas.text({x, middle}, text, style);
    x += text_size(text, style).width + gap;
  };
  const Frame& frame = drawing.frame;
  word(drawing.input.score_label, 6);
  for (const double part : {1.0 / 64, 0.25, 1.0}) {
    canvas.line({x, middle}, {x + 14, middle},
                {theme.text, kTokenThinnest + (kTokenThickest - kTokenThinnest) * std::sqrt(part)});
    x += 17;
    word(format_number(part * frame.most_line, 2), 8);
  }
  const auto is_against = [](const auto& part) { return part.score < 0; };
  if (std::any_of(drawing.panels.begin(), drawing.panels.end(), [&](const PlacedTokenPanel& panel) {
        return std::any_of(panel.lines.begin(), panel.lines.end(), is_against);
      })) {
    x += 4;
    canvas.line({x, middle}, {x + 14, middle}, {theme.category(kTokenAgainst), 1.6});
    x += 17;
    word("against the answer", 12);
  }
  if (frame.most_mlp <= 0) return;
  for (const double part : {1.0 / 16, 1.0}) {
    const double side = kLeastMlp + (kLargestMlp - kLeastMlp) * std::sqrt(part);
    if (part < 1) word("MLP", 6);
    canvas.rounded({x, middle - side / 2, side, side}, side * 0.15, theme.category(kMlp),
                   {theme.text.with_alpha(0.65), 0.5});
    x += side + 3;
    word(format_number(part * frame.most_mlp, 2), 7);
  }
}

Frame frame_of(const TokenCircuit& input, double detail) {
  Frame frame;
  frame.layers = input.layers;
  const auto tokens = static_cast<double>(input.tokens.size());
  const double beside = 2 * kPanelPadding + kTokenLayerRoom + kRightRoom;
  const double least = input.panels.size() == 1 ? kTokenPageWidth : kTokenHalfWidth;
  // Tokens of six points each can still be named; more of them make the panel wider, up to a limit.
  frame.width = std::clamp(beside + 6.5 * tokens, least, kWidestPanel);
  frame.step = std::min(34.0, (frame.width - beside) / std::max(1.0, tokens));
  frame.first = kPanelPadding + kTokenLayerRoom + frame.step / 2;
  // A short prompt stands in the middle.
  frame.first += std::max(0.0, (frame.width - beside - frame.step * tokens) / 2);
  frame.pitch = std::clamp(440.0 / static_cast<double>(input.layers), 6.0, 58.0);
  frame.top = kPanelTitleHeight + kPanelPadding / 2 + detail + kAnswerRoom;
  frame.floor = frame.top + frame.pitch * static_cast<double>(input.layers);
  for (const TokenPanel& panel : input.panels)
    for (const TokenMlp& mlp : panel.mlps)
      frame.most_mlp = std::max(frame.most_mlp, std::abs(mlp.score));
  return frame;
}

}  // namespace

Figure make_figure(const TokenCircuit& input, const Theme& theme) {
  check_input(input);
  const auto drawing = std::make_shared<TokenDrawing>();
  drawing->input = input;
  const double detail = line_height(theme.small_size);
  drawing->frame = frame_of(input, detail);
  Frame& frame = drawing->frame;
  for (const TokenPanel& panel : input.panels) {
    PlacedTokenPanel one = {panel, token_lines(panel.edges), {}};
    one.detail = detail_of(panel.edges.size(), one.lines.size());
    if (!one.lines.empty()) frame.most_line = std::max(frame.most_line, one.lines[0].weight);
    drawing->panels.push_back(std::move(one));
  }
  drawing->named = named_tokens(input, frame);
  drawing->roles = role_rows(input, frame, theme);
  drawing->role_height = kRoleRow * static_cast<double>(*std::max_element(drawing->roles.begin(),
                                                                          drawing->roles.end()));
  double token_room = 0;
  for (std::size_t i = 0; i < input.tokens.size(); ++i)
    if (drawing->named[i])
      token_room = std::max(
          token_room, text_size(visible_token(input.tokens[i]), token_style(frame, theme)).width);
  frame.height = frame.floor + 5 + drawing->role_height + token_room + kPanelPadding / 2;

  const std::size_t columns = std::min<std::size_t>(2, input.panels.size());
  const std::size_t rows = (input.panels.size() + columns - 1) / columns;
  const double width =
      static_cast<double>(columns) * (frame.width + kTokenPanelGap) - kTokenPanelGap;
  const double panels =
      static_cast<double>(rows) * (frame.height + kTokenPanelGap) - kTokenPanelGap;
  PageParts parts = {.title = input.title, .caption_lines = 4};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  return make_page(
      parts, {width, panels + 6 + line_height(theme.text_size)}, theme,
      [=](Canvas& canvas, const Rect& body) {
        for (std::size_t i = 0; i < drawing->panels.size(); ++i) {
          const Point corner = {
              body.x + static_cast<double>(i % columns) * (drawing->frame.width + kTokenPanelGap),
              body.y + static_cast<double>(i / columns) * (drawing->frame.height + kTokenPanelGap)};
          draw_panel(canvas, {corner.x, corner.y, drawing->frame.width, drawing->frame.height},
                     drawing->panels[i].input.title, theme);
          canvas.text({corner.x + kPanelPadding, corner.y + kPanelTitleHeight + kPanelPadding / 2},
                      drawing->panels[i].detail,
                      {.size = theme.small_size,
                       .color = theme.muted,
                       .vertical = VerticalAlign::kTop,
                       .max_width = drawing->frame.width - 2 * kPanelPadding});
          draw_panel_body(canvas, *drawing, i, corner, theme);
        }
        draw_key(canvas, {body.x, body.y + panels + 6}, *drawing, theme);
      });
}

}  // namespace filigree::figure

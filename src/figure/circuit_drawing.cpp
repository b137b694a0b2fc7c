#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "figure/graph_layout.h"
#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kCircuitPageWidth = 516, kCircuitHalfWidth = 350;
constexpr double kCircuitPanelGap = 10;
constexpr double kCircuitThinnest = 0.35, kCircuitThickest = 3;

Color color_of(GraphInput input, const Theme& theme) {
  return Color::hex(edge_color(theme.palette, input));
}

std::string_view label_of(GraphInput input) {
  switch (input) {
    case GraphInput::kQuery: return "into queries";
    case GraphInput::kKey: return "into keys";
    case GraphInput::kValue: return "into values";
    case GraphInput::kNone: break;
  }
  return "into MLPs and logits";
}

struct Laid {
  CircuitPanel panel;
  GraphLayout layout;
};

double width_of(double share) {
  return kCircuitThinnest + (kCircuitThickest - kCircuitThinnest) * std::sqrt(share);
}

std::vector<LegendEntry> legend_of(const std::vector<CircuitPanel>& panels, const Theme& theme) {
  std::vector<LegendEntry> legend;
  bool negative = false;
  for (const GraphInput input :
       {GraphInput::kQuery, GraphInput::kKey, GraphInput::kValue, GraphInput::kNone}) {
    bool seen = false;
    for (const CircuitPanel& panel : panels)
      for (const GraphEdge& edge : panel.graph.edges) {
        seen = seen || edge.input == input;
        negative = negative || edge.score < 0;
      }
    if (seen) legend.push_back({std::string(label_of(input)), color_of(input, theme), true});
  }
  if (negative) legend.push_back({"negative", theme.text, true, true});
  return legend;
}

Stroke stroke_of(const GraphEdge& edge, double most, const Theme& theme) {
  const double part = most > 0 ? std::abs(edge.score) / most : 0;
  const double width = width_of(part);
  Stroke stroke = {color_of(edge.input, theme).with_alpha(0.35 + 0.55 * std::sqrt(part)), width};
  if (edge.score < 0) stroke.dashes = {2.2 + width, 1.4 + 0.6 * width};
  return stroke;
}

void draw_edge(Canvas& canvas, std::vector<Point> line, const Stroke& stroke) {
  // The tip stands straight below the end: every line comes in vertically.
  const double length = 2.6 + stroke.width, half = 1.1 + 0.62 * stroke.width;
  const Point tip = line.back();
  while (line.size() > 2 && line[line.size() - 2].y < tip.y + length) line.erase(line.end() - 2);
  line.back() = {tip.x, tip.y + length * 0.8};
  canvas.polyline(line, stroke);
  const Color solid = stroke.color.with_alpha(std::min(1.0, stroke.color.alpha + 0.25));
  canvas.polygon(
      std::array{tip, Point{tip.x - half, tip.y + length}, Point{tip.x + half, tip.y + length}},
      solid);
}

void draw_node(Canvas& canvas, const Rect& box, const Component& node, const Theme& theme) {
  const bool head = node.kind == ComponentKind::kHead;
  const Color fill = Color::hex(node_color(theme.palette, node.kind));
  canvas.rounded(box, head ? 3.2 : 1.6, fill, {theme.muted, 0.7});
  canvas.text(box.center(), name_of(node),
              {.size = theme.small_size,
               .color = theme.text,
               .bold = head,
               .align = Align::kCenter,
               .vertical = VerticalAlign::kMiddle,
               .max_width = box.width - 1.5});
}

void draw_graph(Canvas& canvas, Point corner, const Laid& laid, double most, const Theme& theme) {
  const auto moved = [&](Rect box) {
    return Rect{box.x + corner.x, box.y + corner.y, box.width, box.height};
  };
  for (const LayerLabel& label : laid.layout.layers) {
    const double y = corner.y + label.y;
    canvas.line({corner.x + 27, y}, {corner.x + laid.layout.size.width, y},
                {theme.grid, theme.hair_width});
    canvas.text(
        {corner.x, y}, fmt::format("layer {}", label.layer),
        {.size = theme.small_size, .color = theme.muted, .vertical = VerticalAlign::kMiddle});
  }
  const CircuitGraph& graph = laid.panel.graph;
  std::vector<std::size_t> order(graph.edges.size());  // the strongest on top
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(graph.edges[a].score) < std::abs(graph.edges[b].score);
  });
  for (const std::size_t e : order) {
    std::vector<Point> line = laid.layout.edges[e];
    for (Point& point : line) point.x += corner.x, point.y += corner.y;
    draw_edge(canvas, std::move(line), stroke_of(graph.edges[e], most, theme));
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    draw_node(canvas, moved(laid.layout.nodes[i]), graph.nodes[i], theme);
}

// Lines of some widths with what they stand for.
void draw_width_key(Canvas& canvas, Point corner, double most, const std::string& label,
                    const Theme& theme) {
  const double middle = corner.y + line_height(theme.text_size) / 2;
  const TextStyle style = {
      .size = theme.text_size, .color = theme.text, .vertical = VerticalAlign::kMiddle};
  canvas.text({corner.x, middle}, label, style);
  double x = corner.x + text_size(label, style).width + 5;
  for (const double share : {1.0 / 64, 0.25, 1.0}) {
    canvas.line({x, middle}, {x + 13, middle}, {theme.text, width_of(share)});
    const std::string number = format_number(share * most, 2);
    canvas.text({x + 16, middle}, number, style);
    x += 16 + text_size(number, style).width + 7;
  }
}

}  // namespace

Figure make_figure(const CircuitDrawing& input, const Theme& theme) {
  require(!input.panels.empty(), "circuit graph: there is no panel to draw");
  const bool framed = input.panels.size() > 1 || !input.panels[0].title.empty();
  const double each = input.panels.size() == 1 ? kCircuitPageWidth : kCircuitHalfWidth;
  const double inside = framed ? each - 2 * kPanelPadding : each;
  // All panels have the same rows and widths, so that they compare.
  LayoutOptions options = {.width = inside};
  for (const CircuitPanel& panel : input.panels) options.beside.push_back(&panel.graph);
  const auto laid = std::make_shared<std::vector<Laid>>();
  double tallest = 0, most = 0;
  for (const CircuitPanel& panel : input.panels) {
    require(!panel.graph.nodes.empty(), "circuit graph: '{}' has no nodes", printable(panel.title));
    check_graph(panel.graph);
    Laid one = {panel, layout_graph(panel.graph, options)};
    for (const GraphEdge& edge : panel.graph.edges) most = std::max(most, std::abs(edge.score));
    tallest = std::max(tallest, one.layout.size.height);
    laid->push_back(std::move(one));
  }
  const auto count = static_cast<double>(input.panels.size());
  const double width = count * each + (count - 1) * kCircuitPanelGap;
  const std::vector<LegendEntry> legend = legend_of(input.panels, theme);
  const double panel_top = framed ? kPanelTitleHeight + kPanelPadding / 2 : 0;
  const double key_height = line_height(theme.text_size) + 3;
  const double panel_height = panel_top + tallest + (framed ? kPanelPadding : 0);
  const double height = panel_height + 6 + key_height + legend_height(legend, width, theme);
  PageParts parts = {.title = input.title, .caption_lines = 3};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const std::string score_label = input.score_label;
  return make_page(parts, {width, height}, theme, [=](Canvas& canvas, const Rect& body) {
    for (std::size_t i = 0; i < laid->size(); ++i) {
      const Laid& one = (*laid)[i];
      const Rect place = {body.x + static_cast<double>(i) * (each + kCircuitPanelGap), body.y, each,
                          panel_height};
      if (framed) draw_panel(canvas, place, one.panel.title, theme);
      const double left = place.x + (framed ? kPanelPadding : 0);
      draw_graph(canvas, {left, place.y + panel_top}, one, most, theme);
    }
    const double below = body.y + panel_height + 5;
    if (most > 0) draw_width_key(canvas, {body.x, below}, most, score_label, theme);
    draw_legend(canvas, {body.x, below + key_height}, body.width, legend, theme);
  });
}

}  // namespace filigree::figure

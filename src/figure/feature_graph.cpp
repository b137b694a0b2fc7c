#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {
namespace {

constexpr double kFeatureWidth = 690, kFeaturePanelGap = 10;
constexpr double kFeatureLayerRoom = 20, kColumnGap = 5, kWidestGap = 40;
constexpr double kNarrowest = 7, kWidest = 27, kBoxHeight = 8.5, kBoxGap = 2;
constexpr double kRowGap = 12;          // between layers, for lines to be told apart
constexpr double kEmptyRow = 3;         // of a layer without nodes
constexpr std::size_t kMostBeside = 4;  // nodes of a layer and token in one line
constexpr double kFeatureLabelSize = 4.9;
constexpr std::size_t kMostNames = 40;  // of heads
constexpr std::size_t kAttention = 0, kFeatureAgainst = 6;

struct PlacedNode {
  FeatureNode node;
  Rect box;  // from the panel's corner
};

struct FeaturePanel {
  FeatureGraphPanel input;
  std::vector<PlacedNode> nodes;
  std::vector<double> rows;        // middle of each layer's row
  std::vector<Rect> columns;       // of each token
  std::vector<std::size_t> order;  // edges, the strongest first
  double floor = 0, height = 0;
  std::string detail;
};

void check_graph_panel(const FeatureGraphFigure& input, const FeatureGraphPanel& panel) {
  const std::string name = fmt::format("feature graph: '{}'", printable(panel.title));
  for (const FeatureNode& node : panel.nodes)
    require(node.position < input.tokens.size() &&
                (node.layer < input.layers || node.kind == FeatureNodeKind::kEmbedding ||
                 node.kind == FeatureNodeKind::kOutput),
            "{}: node '{}' is in layer {} at token {} of {} layers and {} tokens", name,
            printable(node.label), node.layer, node.position, input.layers, input.tokens.size());
  for (const FeatureEdge& edge : panel.edges)
    require(edge.from < panel.nodes.size() && edge.to < panel.nodes.size() &&
                std::isfinite(edge.influence) && edge.influence >= 0,
            "{}: an edge from node {} to {} of {} has influence {}", name, edge.from, edge.to,
            panel.nodes.size(), edge.influence);
}

// Rows from below: embeddings, layers, outputs.
std::size_t row_of(const FeatureNode& node, std::size_t layers) {
  if (node.kind == FeatureNodeKind::kEmbedding) return 0;
  return node.kind == FeatureNodeKind::kOutput ? layers + 1 : node.layer + 1;
}

FeaturePanel placed(const FeatureGraphFigure& input, const FeatureGraphPanel& panel, double top) {
  check_graph_panel(input, panel);
  const std::size_t rows = input.layers + 2, tokens = input.tokens.size();
  FeaturePanel result;
  result.input = panel;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> cells;  // row, token
  for (std::size_t i = 0; i < panel.nodes.size(); ++i)
    cells[{row_of(panel.nodes[i], input.layers), panel.nodes[i].position}].push_back(i);
  std::vector<std::size_t> beside(tokens, 1);
  for (auto& [cell, nodes] : cells) {
    std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
      return panel.nodes[a].influence > panel.nodes[b].influence;
    });
    beside[cell.second] = std::max(beside[cell.second], std::min(kMostBeside, nodes.size()));
  }
  const auto units = static_cast<double>(std::accumulate(beside.begin(), beside.end(), 0UL));
  const double room = kFeatureWidth - 2 * kPanelPadding - kFeatureLayerRoom -
                      static_cast<double>(tokens) * kColumnGap;
  const double box = std::clamp(room / units, 2.0, kWidest);
  // What is left goes between the columns, within limits.
  const double gap =
      kColumnGap + std::clamp((room - box * units) / static_cast<double>(tokens), 0.0, kWidestGap);
  double x =
      kPanelPadding + kFeatureLayerRoom + gap / 2 +
      std::max(0.0, (room + static_cast<double>(tokens) * (kColumnGap - gap) - box * units) / 2);
  for (std::size_t p = 0; p < tokens; ++p) {
    const double width = box * static_cast<double>(beside[p]);
    result.columns.push_back({x, 0, width, 0});
    x += width + gap;
  }
  std::vector<double> heights(rows, kEmptyRow);
  for (const auto& [cell, nodes] : cells) {
    const std::size_t lines = (nodes.size() + beside[cell.second] - 1) / beside[cell.second];
    heights[cell.first] = std::max(heights[cell.first],
                                   static_cast<double>(lines) * (kBoxHeight + kBoxGap) + kRowGap);
  }
  const double all = std::accumulate(heights.begin(), heights.end(), 0.0);
  result.floor = top + all;
  double y = result.floor;
  std::vector<double> bottoms;
  for (std::size_t row = 0; row < rows; ++row) {
    bottoms.push_back(y);
    result.rows.push_back(y - heights[row] / 2);
    y -= heights[row];
  }
  result.nodes.resize(panel.nodes.size());
  for (const auto& [cell, nodes] : cells) {
    const std::size_t each = beside[cell.second];
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t line = i / each, in_line = std::min(each, nodes.size() - line * each);
      const Rect& column = result.columns[cell.second];
      const double left = column.center().x - box * static_cast<double>(in_line) / 2 +
                          box * static_cast<double>(i % each);
      const double bottom =
          bottoms[cell.first] - kRowGap / 2 - static_cast<double>(line) * (kBoxHeight + kBoxGap);
      result.nodes[nodes[i]] = {panel.nodes[nodes[i]],
                                {left + 0.6, bottom - kBoxHeight, box - 1.2, kBoxHeight}};
    }
  }
  result.order.resize(panel.edges.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(), [&](std::size_t a, std::size_t b) {
    return panel.edges[a].influence > panel.edges[b].influence;
  });
  const std::size_t count = result.order.size();
  if (count > kMostFeatureEdges) result.order.resize(kMostFeatureEdges);
  result.detail = fmt::format("{} nodes, {} edges{}", panel.nodes.size(), with_thousands(count),
                              count > kMostFeatureEdges
                                  ? fmt::format(", the {} strongest drawn", kMostFeatureEdges)
                                  : std::string());
  return result;
}

using Bezier = std::array<Point, 4>;

Bezier edge_curve(const PlacedNode& from, const PlacedNode& to, Point corner) {
  const Point a = {corner.x + from.box.center().x, corner.y + from.box.y};
  const Point b = {corner.x + to.box.center().x, corner.y + to.box.bottom()};
  const double bend = std::max(4.0, 0.45 * std::abs(a.y - b.y));
  return {a, {a.x, a.y - bend}, {b.x, b.y + bend}, b};
}

void draw_edges(Canvas& canvas, const FeaturePanel& panel, Point corner, const Theme& theme) {
  double most = 1e-30;
  for (const FeatureEdge& edge : panel.input.edges) most = std::max(most, edge.influence);
  const auto count = static_cast<double>(std::max<std::size_t>(1, panel.order.size()));
  const double faintest = std::clamp(0.35 * std::sqrt(60.0 / count), 0.08, 0.35);
  const auto color_of = [&](const FeatureEdge& edge) {
    if (edge.against) return theme.category(kFeatureAgainst);
    const bool between = panel.nodes[edge.from].node.position != panel.nodes[edge.to].node.position;
    return between ? theme.category(kAttention) : theme.muted;
  };
  for (std::size_t i = panel.order.size(); i-- > 0;) {
    const FeatureEdge& edge = panel.input.edges[panel.order[i]];
    const double part = std::sqrt(edge.influence / most);
    canvas.curve(
        edge_curve(panel.nodes[edge.from], panel.nodes[edge.to], corner),
        {color_of(edge).with_alpha(faintest + (0.85 - faintest) * part), 0.25 + 2.2 * part});
  }
  std::vector<Rect> taken;
  for (const PlacedNode& node : panel.nodes)
    taken.push_back(
        {corner.x + node.box.x, corner.y + node.box.y, node.box.width, node.box.height});
  std::size_t named = 0;
  for (const std::size_t e : panel.order) {
    const FeatureEdge& edge = panel.input.edges[e];
    if (edge.heads.empty()) continue;
    if (++named > kMostNames) break;
    const TextStyle style = {.size = kFeatureLabelSize,
                             .color = mix(color_of(edge), theme.text, 0.45),
                             .bold = true,
                             .align = Align::kCenter,
                             .vertical = VerticalAlign::kMiddle};
    const Bezier curve = edge_curve(panel.nodes[edge.from], panel.nodes[edge.to], corner);
    const double width = text_size(edge.heads, style).width + 2;
    for (const double t : {0.5, 0.4, 0.6, 0.3, 0.7}) {
      const double u = 1 - t;
      const std::array<double, 4> w = {u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t};
      Point at;
      for (std::size_t k = 0; k < w.size(); ++k)
        at.x += w[k] * curve[k].x, at.y += w[k] * curve[k].y;
      const Rect rect = {at.x - width / 2, at.y - kFeatureLabelSize / 2, width, kFeatureLabelSize};
      if (std::any_of(taken.begin(), taken.end(),
                      [&](const Rect& other) { return other.overlaps(rect); }))
        continue;
      taken.push_back(rect);
      canvas.fill(rect, theme.panel.with_alpha(0.85));
      canvas.text(at, edge.heads, style);
      break;
    }
  }
}

void draw_nodes(Canvas& canvas, const FeaturePanel& panel, Point corner, const Theme& theme) {
  double most = 1e-30;
  for (const PlacedNode& node : panel.nodes)
    if (node.node.kind == FeatureNodeKind::kFeature) most = std::max(most, node.node.influence);
  for (const PlacedNode& placed : panel.nodes) {
    const FeatureNode& node = placed.node;
    Rect box = {corner.x + placed.box.x, corner.y + placed.box.y, placed.box.width,
                placed.box.height};
    const bool output = node.kind == FeatureNodeKind::kOutput;
    const double part = std::sqrt(std::min(1.0, node.influence / most));
    const Color fill = node.kind == FeatureNodeKind::kFeature
                           ? mix(theme.page, theme.magnitude.at(0.75), 0.12 + 0.55 * part)
                           : theme.page;
    Stroke stroke = {output ? theme.text : theme.frame, output ? 0.8 : 0.5};
    if (node.kind == FeatureNodeKind::kError) stroke.dashes = {1.6, 1.2};
    canvas.rounded(box, node.kind == FeatureNodeKind::kEmbedding ? 0.8 : 2.2, fill, stroke);
    if (box.width < kNarrowest) continue;
    canvas.text(box.center(), node.label,
                {.size = kFeatureLabelSize,
                 .color = node.kind == FeatureNodeKind::kError ? theme.muted : theme.text,
                 .bold = output,
                 .align = Align::kCenter,
                 .vertical = VerticalAlign::kMiddle,
                 .max_width = box.width - 1});
  }
}

TextStyle bottom_token_style(const Theme& theme) {
  return {.size = theme.text_size,
          .color = theme.text,
          .align = Align::kCenter,
          .vertical = VerticalAlign::kMiddle};
}

// A token is written along its column where that is wide enough, else upwards.
bool lies(const std::string& token, const Rect& column, const Theme& theme) {
  return text_size(token, bottom_token_style(theme)).width <= column.width + kColumnGap - 1.5;
}

void draw_rows(Canvas& canvas, const FeatureGraphFigure& input, const FeaturePanel& panel,
               Point corner, const Theme& theme) {
  for (std::size_t row = 1; row <= input.layers; ++row)
    canvas.text(
        {corner.x + kPanelPadding, corner.y + panel.rows[row]},
        layer_name(static_cast<std::int64_t>(row) - 1),
        {.size = theme.small_size - 0.5, .color = theme.muted, .vertical = VerticalAlign::kMiddle});
  for (std::size_t p = 0; p < input.tokens.size(); ++p) {
    const Rect& column = panel.columns[p];
    const double x = corner.x + column.center().x;
    canvas.line({x, corner.y + panel.floor}, {x, corner.y + panel.rows.back()},
                {theme.grid, theme.hair_width});
    const std::string token = visible_token(input.tokens[p]);
    TextStyle style = bottom_token_style(theme);
    const bool flat = lies(token, column, theme);
    if (!flat) style.angle = 90, style.align = Align::kRight, style.max_width = 52;
    canvas.text({x, corner.y + panel.floor + (flat ? 5 : 2)}, token, style);
  }
}

}  // namespace

Figure make_figure(const FeatureGraphFigure& input, const Theme& theme) {
  require(!input.panels.empty(), "feature graph: there is no panel to draw");
  require(!input.tokens.empty() && input.layers > 0,
          "feature graph: {} tokens and {} layers are no graph", input.tokens.size(), input.layers);
  const auto panels = std::make_shared<std::vector<FeaturePanel>>();
  const double detail = line_height(theme.small_size);
  double height = 0;
  for (const FeatureGraphPanel& panel : input.panels) {
    panels->push_back(placed(input, panel, kPanelTitleHeight + kPanelPadding / 2 + detail + 2));
    FeaturePanel& one = panels->back();
    double token_room = 10;
    for (std::size_t p = 0; p < input.tokens.size(); ++p) {
      const std::string token = visible_token(input.tokens[p]);
      if (!lies(token, one.columns[p], theme))
        token_room = std::max(
            token_room, std::min(52.0, text_size(token, bottom_token_style(theme)).width) + 5);
    }
    one.height = one.floor + token_room + kPanelPadding / 2;
    height += one.height + kFeaturePanelGap;
  }
  const std::vector<LegendEntry> legend = {
      {"attention between tokens, with the head that carries most", theme.category(kAttention),
       true},
      {"at one token", theme.muted, true},
      {"lowers what it goes to", theme.category(kFeatureAgainst), true}};
  const auto shared = std::make_shared<const FeatureGraphFigure>(input);
  PageParts parts = {.title = input.title, .caption_lines = 4};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  return make_page(
      parts,
      {kFeatureWidth, height - kFeaturePanelGap + 5 + legend_height(legend, kFeatureWidth, theme)},
      theme, [=](Canvas& canvas, const Rect& body) {
        double y = body.y;
        for (const FeaturePanel& panel : *panels) {
          const Point corner = {body.x, y};
          draw_panel(canvas, {corner.x, corner.y, kFeatureWidth, panel.height}, panel.input.title,
                     theme);
          canvas.text(
              {corner.x + kPanelPadding, corner.y + kPanelTitleHeight + kPanelPadding / 2},
              panel.detail,
              {.size = theme.small_size, .color = theme.muted, .vertical = VerticalAlign::kTop});
          draw_rows(canvas, *shared, panel, corner, theme);
          draw_edges(canvas, panel, corner, theme);
          draw_nodes(canvas, panel, corner, theme);
          y += panel.height + kFeaturePanelGap;
        }
        draw_legend(canvas, {body.x, y - kFeaturePanelGap + 5}, kFeatureWidth, legend, theme);
      });
}

}  // namespace filigree::figure

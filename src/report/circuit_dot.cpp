#include "report/circuit_dot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "filigree/names.h"
#include "filigree/palette.h"

namespace filigree {
namespace {

std::string_view label_of(GraphInput input) {
  switch (input) {
    case GraphInput::kQuery: return "q";
    case GraphInput::kKey: return "k";
    case GraphInput::kValue: return "v";
    case GraphInput::kNone: break;
  }
  return "";
}

}  // namespace

std::string dot_quoted(std::string_view text) {
  std::string quoted = "\"";
  std::size_t begin = 0;
  // Line by line: printable() writes other control characters and broken UTF-8 as \xNN.
  while (true) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    for (const char c : printable(line, line.size() + 1)) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    if (end == text.size()) break;
    quoted += "\\n";
    begin = end + 1;
  }
  return quoted + "\"";
}

std::string circuit_dot(const CircuitGraph& graph, std::string_view title) {
  check_graph(graph);
  std::string text = fmt::format("digraph {} {{\n  rankdir=BT;\n", dot_quoted("circuit"));
  if (!title.empty()) text += fmt::format("  label={};\n  labelloc=t;\n", dot_quoted(title));
  text +=
      "  fontname=\"Noto Sans\";\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Noto Sans\"];\n"
      "  edge [fontname=\"Noto Sans\", labelfontsize=9, labeldistance=1.6];\n";
  std::map<std::int64_t, std::vector<std::size_t>> ranks;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) ranks[depth_of(graph.nodes[i])].push_back(i);
  for (const auto& [depth, nodes] : ranks) {
    text += "  { rank=same;";
    for (const std::size_t i : nodes) {
      const Component& node = graph.nodes[i];
      text += fmt::format(" n{} [label={}, fillcolor=\"{}\"];", i, dot_quoted(name_of(node)),
                          hex_text(node_color(kLightPalette, node.kind)));
    }
    text += " }\n";
  }
  double most = 0;
  for (const GraphEdge& edge : graph.edges) most = std::max(most, std::abs(edge.score));
  for (const GraphEdge& edge : graph.edges) {
    const std::string_view label = label_of(edge.input);
    const std::string color = hex_text(edge_color(kLightPalette, edge.input));
    const double part = most > 0 ? std::abs(edge.score) / most : 0;
    text += fmt::format("  n{} -> n{} [", edge.from, edge.to);
    if (!label.empty())
      text += fmt::format("headlabel=\"{}\", labelfontcolor=\"{}\", ", label, color);
    text += fmt::format("color=\"{}\", penwidth={:.2f}, style={}, score=\"{:.6g}\"];\n", color,
                        0.5 + 3.5 * part, edge.score < 0 ? "dashed" : "solid", edge.score);
  }
  return text + "}\n";
}

}  // namespace filigree

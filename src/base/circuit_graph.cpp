#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

std::int64_t depth_of(const Component& node) {
  switch (node.kind) {
    case ComponentKind::kInput: return -1;
    case ComponentKind::kHead: return 2 * node.layer;
    case ComponentKind::kMlp:
    case ComponentKind::kExpert: return 2 * node.layer + 1;
    case ComponentKind::kLogits: break;
  }
  return std::numeric_limits<std::int64_t>::max();
}

void check_graph(const CircuitGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Component& node = graph.nodes[i];
    require(node.layer >= 0 && node.layer < (1 << 20) && node.head >= 0 && node.expert >= 0,
            "circuit graph: node {} has layer {}, head {} and expert {}", i, node.layer, node.head,
            node.expert);
    require(std::find(graph.nodes.begin(), graph.nodes.begin() + static_cast<std::ptrdiff_t>(i),
                      node) == graph.nodes.begin() + static_cast<std::ptrdiff_t>(i),
            "circuit graph: the node {} comes twice", name_of(node));
  }
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const GraphEdge& edge = graph.edges[i];
    require(edge.from < graph.nodes.size() && edge.to < graph.nodes.size(),
            "circuit graph: edge {} runs from node {} to node {}, but there are {} nodes", i,
            edge.from, edge.to, graph.nodes.size());
    const Component &from = graph.nodes[edge.from], &to = graph.nodes[edge.to];
    const std::string name =
        fmt::format("circuit graph: the edge {} -> {}", name_of(from), name_of(to));
    require(depth_of(from) < depth_of(to), "{} runs against the computation", name);
    require((to.kind == ComponentKind::kHead) == (edge.input != GraphInput::kNone),
            "{}: edges into heads, and only they, go into a query, key or value", name);
    require(std::isfinite(edge.score), "{} has the score {}", name, edge.score);
  }
}

CircuitGraph strongest_edges(const CircuitGraph& graph, std::size_t most) {
  if (graph.edges.size() <= most) return graph;
  std::vector<std::size_t> order(graph.edges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(graph.edges[a].score) > std::abs(graph.edges[b].score);
  });
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<bool> touched(graph.nodes.size(), false);
  for (const std::size_t e : order)
    touched[graph.edges[e].from] = touched[graph.edges[e].to] = true;
  CircuitGraph strongest;
  std::vector<std::size_t> place(graph.nodes.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!touched[i]) continue;
    place[i] = strongest.nodes.size();
    strongest.nodes.push_back(graph.nodes[i]);
  }
  for (const std::size_t e : order) {
    strongest.edges.push_back(graph.edges[e]);
    strongest.edges.back().from = place[graph.edges[e].from];
    strongest.edges.back().to = place[graph.edges[e].to];
  }
  return strongest;
}

}  // namespace filigree

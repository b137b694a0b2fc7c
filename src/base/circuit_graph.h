// A circuit as a graph, in plain data: analyses make it, figures and reports draw it. It stands
// here because those modules share nothing above this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/component.h"

namespace filigree {

// What of a head an edge goes into; nothing else has a choice.
enum class GraphInput { kNone, kQuery, kKey, kValue };

struct GraphEdge {
  std::size_t from = 0, to = 0;  // places in CircuitGraph::nodes
  GraphInput input = GraphInput::kNone;
  double score = 0;
};

struct CircuitGraph {
  std::vector<Component> nodes = {};
  std::vector<GraphEdge> edges = {};
};

// Where a node stands in the order of the computation: edges must go from lower to higher.
std::int64_t depth_of(const Component& node);

// Throws Error, naming the node or edge, where a node comes twice, an edge names a node that is
// not there or runs against the computation, its input does not fit its end, or its score is not
// finite.
void check_graph(const CircuitGraph& graph);

// The `most` edges with the largest absolute scores, in the order they had, and the nodes that they
// touch. A graph of no more edges comes back as it is.
CircuitGraph strongest_edges(const CircuitGraph& graph, std::size_t most);

}  // namespace filigree

// Circuits of edges: the few edges of the component graph that explain a task, all others carrying
// corrupt values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/circuit/edge_scores.h"
#include "filigree/circuit.h"
#include "filigree/names.h"

namespace filigree {

struct EdgeCurve : Curve {
  std::vector<std::int64_t> order = {};  // edge numbers

  // The edges of a point: the first of the order that lie on a path from the input to the logits.
  std::vector<std::int64_t> edges_of(const ComponentGraph& graph, const CurvePoint& point) const;
};

// Keeps the first k of the order without those that lead nowhere (ComponentGraph::connected), for
// every k in `sizes` (empty: spread_sizes). With a level, the size there is searched for.
EdgeCurve keep_edges(const Model& model, const ComponentGraph& graph,
                     const std::vector<TaskPrompt>& prompts, std::vector<std::int64_t> order,
                     std::vector<std::size_t> sizes, std::optional<double> level,
                     const PatchOptions& options = {});

// Walks back from the logits: always the edge with the largest absolute score among those that lead
// to a node that is already there (or to the logits). Every edge is in the order.
std::vector<std::int64_t> greedy_edge_order(const ComponentGraph& graph, const EdgeScores& scores);

// Edges (numbers) as figures have them: scores are the mean drops, nodes those that the edges
// touch, in the order of a run. An edge into a key or value that heads share goes to each of them
// that another edge leaves.
CircuitGraph drawn_edges(const ComponentGraph& graph, const std::vector<std::int64_t>& edges,
                         const EdgeScores& scores);

}  // namespace filigree

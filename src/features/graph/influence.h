// Which nodes and edges of an attribution graph matter, as circuit-tracer defines it: a row's
// magnitudes divided by their sum say where a target's value comes from, and a node's influence is
// the sum over all paths to the targets, these weighted.
#pragma once

#include <cstdint>
#include <vector>

#include "features/graph/attribution_graph.h"

namespace filigree {

inline constexpr double kSmallestRowSum = 1e-10;

// Of each node; the targets have none.
std::vector<double> node_influence(const AttributionGraph& graph);

struct GraphScores {
  double replacement = 0.0;   // influence of embeddings, against that of embeddings and errors
  double completeness = 0.0;  // share of nodes' inputs that are not errors, by influence
};
GraphScores graph_scores(const AttributionGraph& graph);

struct PruneOptions {
  double node_share = 0.8;   // of all influence that kept nodes have
  double edge_share = 0.98;  // of the influence along edges between them
};

struct EffectEdge {
  std::int64_t target = 0, source = 0;  // nodes
  double effect = 0.0;
  double influence = 0.0;  // of the target's and its own share of the target's inputs
};

// All edges between kept nodes (null: all nodes) with what they would carry if there were no
// others.
std::vector<EffectEdge> influential_edges(const AttributionGraph& graph,
                                          const std::vector<bool>* kept = nullptr);

struct PrunedGraph {
  std::vector<bool> kept;          // of each node
  std::vector<double> influence;   // of each node, unpruned
  std::vector<double> cumulative;  // of each node: share of influence up to its rank
  std::vector<EffectEdge> edges;   // by target, then source
  GraphScores scores;              // of the pruned graph, what was removed counted as errors
  std::int64_t count() const;      // nodes kept
  std::vector<std::int64_t> nodes() const;
};

PrunedGraph prune_graph(const AttributionGraph& graph, const PruneOptions& options = {});

}  // namespace filigree

// The attribution graph of a prompt: direct effects between active features, errors, embeddings and
// what is to be explained, in the model with attention weights and norms frozen.
//
// effect[t][s] is how much of target t's value (a feature before its activation function, a logit
// less the mean logit) source s brings by all paths through the residual stream and frozen heads
// that pass no other feature. A row's effects, what is left out and the biases sum up to the value.
#pragma once

#include <string>
#include <vector>

#include "features/graph/sweep.h"

namespace filigree {

// What is to be explained.
struct GraphTarget {
  GraphNode node;  // kTarget
  StreamReading reading;
  double value = 0.0;
  double weight = 1.0;         // how much its explanation matters: a logit's probability
  double probability = 0.0;    // of a logit, in the run
  std::int64_t against = -1;   // of a difference of logits: the other token
  std::int64_t of_layer = -1;  // of a feature: its layer
};

// The fewest likeliest next tokens with at least this probability together.
std::vector<GraphTarget> likeliest_logits(const FrozenModel& frozen, double probability = 0.95,
                                          std::int64_t most = 10);
GraphTarget logit_target(const FrozenModel& frozen, std::int64_t token);
GraphTarget logit_difference(const FrozenModel& frozen, std::int64_t token, std::int64_t against);
GraphTarget feature_target(const FrozenModel& frozen, const FeatureDictionary& features,
                           std::int64_t layer, std::int64_t position, std::int32_t feature);

struct GraphOptions {
  std::int64_t max_features = 7500;  // features that become nodes: the most influential ones
  std::int64_t batch = 256;          // targets of a sweep, fewer where the prompt is long
  std::int64_t rerank = 4;           // batches after which influence is computed again
};

struct AttributionGraph {
  std::vector<GraphNode> nodes;  // features, errors, embeddings, targets
  std::int64_t features = 0, errors = 0, embeddings = 0, targets = 0;
  std::vector<std::int32_t> source;  // of each node but the targets: which of GraphSources
  Tensor effects;                    // [features + targets, features + errors + embeddings]
  // Of each row.
  std::vector<double> value, bias;
  std::vector<double> left_out;  // from active features that are no nodes
  std::vector<double> weight;    // of each target
  std::int64_t active_features = 0;

  std::int64_t rows() const { return features + targets; }
  std::int64_t sources() const { return features + errors + embeddings; }
  std::int64_t first_error() const { return features; }
  std::int64_t first_embedding() const { return features + errors; }
  std::int64_t first_target() const { return sources(); }
  // The node whose effects a row has.
  std::int64_t node_of_row(std::int64_t row) const {
    return row < features ? row : row + errors + embeddings;
  }
  // -1: errors and embeddings have none.
  std::int64_t row_of_node(std::int64_t node) const {
    if (node < features) return node;
    return node < sources() ? -1 : node - errors - embeddings;
  }
  const float* row(std::int64_t r) const { return effects.f32() + r * sources(); }
};

AttributionGraph attribution_graph(const FrozenModel& frozen, const GraphSources& sources,
                                   const std::vector<GraphTarget>& targets,
                                   const GraphOptions& options = {});

}  // namespace filigree

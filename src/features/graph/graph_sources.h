// The nodes that an attribution graph can have and what each writes into the residual stream:
// active features, what the transcoder misses of each MLP (errors), and embeddings.
#pragma once

#include <cstdint>
#include <vector>

#include "base/names.h"
#include "features/dictionary.h"
#include "features/graph/frozen_model.h"

namespace filigree {

enum class NodeKind { kFeature, kError, kEmbedding, kTarget };
template <>
inline constexpr auto kNames<NodeKind> =
    std::to_array<Named<NodeKind>>({{NodeKind::kFeature, "feature"},
                                    {NodeKind::kError, "error"},
                                    {NodeKind::kEmbedding, "embedding"},
                                    {NodeKind::kTarget, "target"}});

struct GraphNode {
  NodeKind kind = NodeKind::kFeature;
  std::int64_t layer = -1;  // of embeddings -1, of logits the number of layers
  std::int64_t position = 0;
  std::int64_t feature = -1;  // or the token of an embedding or logit; -1 if there is none
  double activation = 0.0;    // of features

  bool operator==(const GraphNode&) const = default;
};

struct SourceOptions {
  // Features and errors of the first position are no nodes; its MLPs write what they wrote.
  // Position 0 is where attention that is not needed goes, with a stream like no other.
  bool without_first_position = false;
  bool positions_in_embeddings = true;  // else they are among the biases
};

struct GraphSources {
  std::vector<GraphNode>
      nodes;  // features by (layer, position, index), errors by layer, embeddings
  std::int64_t features = 0, errors = 0, embeddings = 0;
  std::vector<std::int64_t> reach;      // of the features of each layer
  std::vector<StreamWrites> mlp;        // of each layer, behind its MLP
  std::vector<StreamWrites> attention;  // of each layer, behind its attention: biases
  StreamWrites embedding;
  // Of each feature, as a target: what it reads of the stream, and its value in the run.
  std::vector<StreamReading> readings;
  std::vector<double> values;

  std::int64_t count() const { return static_cast<std::int64_t>(nodes.size()); }
  std::int32_t bias() const { return static_cast<std::int32_t>(nodes.size()); }
};

// Fills the frozen model's skips too. Throws Error when the features are those of a model of
// another shape or hooks are not known.
GraphSources graph_sources(FrozenModel& frozen, const FeatureDictionary& features,
                           const SourceOptions& options = {});

// What some feature reads, active or not, and the value it has before its activation function.
struct FeatureReading {
  StreamReading reading;
  double value = 0.0;
};
FeatureReading feature_reading(const FrozenModel& frozen, const FeatureDictionary& features,
                               std::int64_t layer, std::int64_t position, std::int32_t feature);

}  // namespace filigree

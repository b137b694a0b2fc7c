// A model's run with features or heads changed, to hold what a graph says against what happens.
#pragma once

#include <cstdint>
#include <vector>

#include "base/component.h"
#include "base/names.h"
#include "features/graph/attribution_graph.h"

namespace filigree {

// What of the unchanged run stays.
enum class RunMode {
  kConstrained,  // attention, norms' denominators and MLPs: only what is written directly changes
  kFrozen,       // attention weights: MLPs and norms answer
  kFree,         // nothing
};
template <>
inline constexpr auto kNames<RunMode> =
    std::to_array<Named<RunMode>>({{RunMode::kConstrained, "constrained"},
                                   {RunMode::kFrozen, "attention-frozen"},
                                   {RunMode::kFree, "free"}});

// A feature's activation becomes `value`: what it writes changes by the difference.
struct FeatureChange {
  FeatureId feature = {};
  std::int64_t position = 0;
  double activation = 0.0;  // in the unchanged run
  double value = 0.0;
};

// A head's attention weights are multiplied.
struct HeadChange {
  HeadId head = {};
  double factor = 0.0;
};

struct RunChanges {
  std::vector<FeatureChange> features = {};
  std::vector<HeadChange> heads = {};
};

// The logits of the last position, f32 [vocabulary], before a soft cap. Throws Error for features,
// heads and positions that there are not.
class ChangedRuns {
 public:
  ChangedRuns(const Model& model, const FrozenModel& frozen, const FeatureDictionary& features);

  Tensor logits(const RunChanges& changes, RunMode mode) const;
  // A target's value of such logits.
  double value(const GraphTarget& target, const Tensor& logits) const;

 private:
  const Model& model_;
  const FrozenModel& frozen_;
  const FeatureDictionary& features_;
  std::vector<std::pair<std::string, Tensor>> clean_;  // taps that modes hold
};

// What setting each feature node to zero does to a target, by the graph: directly, and through all
// features that it moves, as long as these stay active.
struct PredictedEffects {
  std::vector<double> direct, total;  // of each feature node
};
PredictedEffects predicted_ablations(const AttributionGraph& graph, std::int64_t target);

}  // namespace filigree

// How much a task needs each part of a model: the drop of the metric when the part takes its
// corrupt value.
//
//   exact                 M(clean) - M(clean run with the part replaced)
//   attribution           (x_clean - x_corrupt) . dM/dx at the clean run
//   integrated gradients  the same with the gradient averaged over runs whose token embeddings lie
//                         between clean and corrupt, at the midpoints of m equal steps
//
// Attribution is the first-order estimate of the exact drop, in one forward and one backward pass
// for all parts together. In a gated model the gates stay as the run sets them: their slope is 0
// wherever it exists, and the straight-through gradient of training is none of the metric's.
#pragma once

#include <vector>

#include "analyze/circuit/patched_runs.h"

namespace filigree {

struct Importance {
  std::vector<PatchTarget> targets;
  std::vector<double> clean, corrupt;      // the metric of each prompt
  std::vector<std::vector<double>> drops;  // [target][prompt]

  Estimate of(std::size_t target) const { return estimate(drops[target]); }
  // Indices of the targets, the largest absolute mean first; equal ones in the targets' order.
  std::vector<std::size_t> order() const;
};

Importance exact_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                            const std::vector<PatchTarget>& targets,
                            const PatchOptions& options = {});

// `steps` 0: the gradient at the clean run; otherwise integrated gradients of so many steps. Throws
// Error for a replacement other than kCorrupt or kZero, and for accuracy as a metric.
Importance attributed_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const std::vector<PatchTarget>& targets, int steps,
                                 const PatchOptions& options = {});

}  // namespace filigree

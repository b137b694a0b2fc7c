// How much a task needs each edge of the component graph: the drop of the metric when the edge
// carries its corrupt value.
//
//   exact    M(clean) - M(clean run with that edge patched), a run an edge
//   EAP      (x_u(clean) - x_u(corrupt)) . dM/d in_v at the clean run (edge attribution patching)
//   EAP-IG   the same with the gradient averaged over runs whose token embeddings lie between clean
//            and corrupt, at the midpoints of m equal steps
//
// EAP and EAP-IG score all edges at once: two forward passes for the differences, one forward and
// backward pass a step for the gradients, and one matrix product a layer and prompt.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/circuit/edge_runs.h"

namespace filigree {

struct EdgeScores {
  std::vector<Estimate> drops = {};              // of each edge, over the prompts
  std::vector<double> clean = {}, corrupt = {};  // the metric of each prompt

  // Edge numbers, the largest absolute drop first; equal ones in the graph's order.
  std::vector<std::int64_t> order() const;
};

// All edges of the graph, or those given; the others have a drop of 0.
EdgeScores exact_edge_scores(const Model& model, const ComponentGraph& graph,
                             const std::vector<TaskPrompt>& prompts,
                             const PatchOptions& options = {},
                             const std::vector<std::int64_t>* edges = nullptr);

// `steps` 0: EAP; otherwise EAP-IG of so many steps. Throws Error for a replacement other than
// kCorrupt and for metrics without a slope.
EdgeScores attributed_edge_scores(const Model& model, const ComponentGraph& graph,
                                  const std::vector<TaskPrompt>& prompts, int steps,
                                  const PatchOptions& options = {});

}  // namespace filigree

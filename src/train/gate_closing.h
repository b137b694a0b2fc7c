// Gates lowered until no more than a given share of the attention edges is open, in the heads where
// that costs the least loss.
//
// What an edge is worth differs between heads by orders of magnitude: one that gathers a whole
// passage may hold a third of all open edges and hardly miss a tenth of them. Each step therefore
// lowers the gate of the one head whose next step costs the least loss for an edge that it closes,
// measured on held-out text. What a head's step costs is measured again when that head was lowered;
// those of others are taken to stay as they were. Of the last step no more is taken than is needed.
// Heads that hold hardly any of the open edges are left as they are.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "train/evaluation.h"

namespace filigree {

struct GateClosing {
  struct Step {
    std::size_t head = 0;            // counted over all layers
    float lowered = 0.0f;            // in all
    double loss = 0.0, edges = 0.0;  // then; the share of the edges that is open
  };
  double most_edges = 0.0;         // asked for
  double loss = 0.0, edges = 0.0;  // before the first step
  std::vector<Step> steps;
  std::vector<float> lowered;  // the gate of every head, layer by layer

  double last_loss() const { return steps.empty() ? loss : steps.back().loss; }
  double last_edges() const { return steps.empty() ? edges : steps.back().edges; }
  bool reached() const { return last_edges() <= most_edges; }
};

// Lowers the gate biases of `model`, which must have a gate; one shared bias becomes one for every
// head. Leaves a model as it is that has so few edges open. `windows` gives the same held-out text
// at every call. `progress` is called after every measurement with the share of edges that is open
// so far.
GateClosing close_gates(Model& model, double most_edges,
                        const std::function<EvaluationWindows()>& windows,
                        const std::function<void(double edges)>& progress = {},
                        Communicator* ranks = nullptr);

}  // namespace filigree

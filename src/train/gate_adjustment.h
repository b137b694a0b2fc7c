// The last step of sparse post-training: gates that are certain, set to the loss that was asked
// for.
//
// Gates are sampled in training and certain afterwards, which closes every edge that was open now
// and then. Each head has a shift of its gate logits with which as many of its edges are open for
// certain as sampled ones would be on average. One number scales the shifts of all heads: the
// smallest scale, in steps of a quarter, whose loss is at most the one asked for is taken; below 0
// it closes edges that the loss does not need. Where none reaches that loss, the scale of the
// lowest loss is taken.
#pragma once

#include <functional>
#include <vector>

#include "train/evaluation.h"

namespace filigree {

struct GateAdjustment {
  struct Measured {
    double scale = 0.0, loss = 0.0, edges = 0.0;  // the share of the edges that is open
  };
  double most_loss = 0.0;          // asked for
  std::vector<float> head_shifts;  // at scale 1, layer by layer
  std::vector<Measured> tried;     // the first is the model as it was
  Measured chosen;

  bool reached() const { return chosen.loss <= most_loss; }
};

// Changes the gate biases of `model`, which must have a gate; one shared bias becomes one for every
// head. `windows` gives the same held-out text at every call.
GateAdjustment adjust_gates(Model& model, double most_loss,
                            const std::function<EvaluationWindows()>& windows,
                            Communicator* ranks = nullptr);

}  // namespace filigree

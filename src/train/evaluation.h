// How good and how sparse a model is on held-out text: cross entropy over windows, and the share of
// attention edges that are open in every head, with deterministic gates.
//
//   loss           = (sum of -log p(target) over the counted targets) / (number of them)
//   active edges   = open gates / causal pairs       keys per query = open gates / queries
//
// both over all positions of all windows. Without a gate every edge counts as open.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "model/living_heads.h"
#include "model/model.h"
#include "train/evaluation_windows.h"

namespace filigree {

struct WindowLoss {
  double sum = 0.0;  // in nats
  std::int64_t tokens = 0;
};

struct Connectivity {
  double active_edges = 1.0;  // share of the edges that mask and window leave
  double keys_per_query = 0.0;
};

struct Evaluation {
  std::int64_t layers = 0, heads = 0;
  WindowLoss total;
  std::vector<WindowLoss> windows;  // in the order of the source
  std::vector<double> open_edges;   // of each layer and head
  // As many as gates that are sampled would open on average; 0 without a gate and with taps.
  std::vector<double> expected_edges;
  // Edges of one head of each layer, over all windows: those that the causal mask and the layer's
  // window of keys leave.
  std::vector<double> edges;
  std::int64_t queries = 0;  // positions, over all windows

  double loss() const { return total.sum / static_cast<double>(total.tokens); }
  double perplexity() const;
  // Standard error of the loss, from how it differs between windows; nothing for a single window.
  std::optional<double> loss_error() const;

  // The mean over all heads, over those of a layer, and of one head.
  Connectivity connectivity() const;
  Connectivity connectivity(std::int64_t layer) const;
  Connectivity connectivity(std::int64_t layer, std::int64_t head) const;
  LivingHeads living() const;

 private:
  Connectivity of_heads(std::int64_t first, std::int64_t count) const;
};

// Standard error of a.loss() - b.loss(). The two are compared window by window, which takes out
// what makes a window hard for both; nothing unless they were measured on windows of equal sizes.
std::optional<double> change_error(const Evaluation& a, const Evaluation& b);

// Calls `progress` after every forward pass with what has been found so far. Throws Error for ids
// the model does not have, windows longer than its context, and when there is no window at all.
// Several ranks take turns at the batches and all get the whole result, to the bit that of one;
// `progress` then sees this rank's part. With taps, whose interventions hold for every pass, open
// edges are counted at the gates themselves.
Evaluation evaluate(const Model& model, const EvaluationWindows& windows,
                    const std::function<void(const Evaluation&)>& progress = {},
                    Communicator* ranks = nullptr, const Taps* taps = nullptr);

}  // namespace filigree

// Loss and sparsity on held-out text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "filigree/data.h"
#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/ranks.h"
#include "filigree/tokenizer.h"
#include "filigree/train.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Held-out text as windows that fit a model's context.
//
// n tokens are cut into windows of at most `length` inputs that start every `stride` tokens. The
// target of input i is token i + 1. Where windows overlap only the targets that no earlier window
// had are counted, so that each of the n - 1 targets counts exactly once, with at least
// length - stride tokens of context (except in the first window):
//
//   loss = 1 / (n - 1)  sum_{i=1}^{n-1}  -log p(x_i | x_{b(i)} ... x_{i-1})
//
// where b(i) is the start of the first window that has target i.

struct WindowOptions {
  std::int64_t length = 0;      // inputs a window; 0: the model's context
  std::int64_t stride = 0;      // 0: as long as the window, no overlap; of text only
  std::int64_t batch = 0;       // windows a forward pass; 0: about 1024 tokens
  std::int64_t max_tokens = 0;  // stop at the first window's end from there on; 0: all
  std::int64_t first = 0;       // token to begin with; of shards only
};

// Of text only: the stride.
Knobs knobs_of(WindowOptions& options);

// The length that the options mean for a model. Throws Error when it is beyond its context.
std::int64_t window_length(const WindowOptions& options, const ModelConfig& config);

struct EvaluationWindows {
  // Windows of one length, targets that do not count being kIgnoredTarget; nothing at the end.
  std::function<std::optional<Batch>()> next;
  std::int64_t targets = 0;  // that will be counted
};

// The whole of `ids`, which must stay alive. Throws Error for fewer than two.
EvaluationWindows text_windows(std::span<const TokenId> ids, const WindowOptions& options,
                               const ModelConfig& config);

// A split of token shards from its first token that is asked for, without overlap. Throws Error for
// fewer than two tokens.
EvaluationWindows shard_windows(const TokenSplit& split, const WindowOptions& options,
                                const ModelConfig& config);

struct Window {
  std::int64_t begin = 0;          // of the inputs
  std::int64_t end = 0;            // one past the last input; also the last target
  std::int64_t first_counted = 0;  // index of the first target that counts
};

// Only the last one may be shorter than `length`. Throws Error unless there are at least two tokens
// and 0 < stride <= length.
std::vector<Window> windows_of(std::int64_t tokens, std::int64_t length, std::int64_t stride);

// -------------------------------------------------------------------------------------------------
// How good and how sparse a model is on held-out text: cross entropy over windows, and the share of
// attention edges that are open in every head, with deterministic gates.
//
//   loss           = (sum of -log p(target) over the counted targets) / (number of them)
//   active edges   = open gates / causal pairs       keys per query = open gates / queries
//
// both over all positions of all windows. Without a gate every edge counts as open.

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

// -------------------------------------------------------------------------------------------------
// The last step of sparse post-training: gates that are certain, set to the loss that was asked
// for.
//
// Gates are sampled in training and certain afterwards, which closes every edge that was open now
// and then. Each head has a shift of its gate logits with which as many of its edges are open for
// certain as sampled ones would be on average. One number scales the shifts of all heads: the
// smallest scale, in steps of a quarter, whose loss is at most the one asked for is taken; below 0
// it closes edges that the loss does not need. Where none reaches that loss, the scale of the
// lowest loss is taken.

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

// -------------------------------------------------------------------------------------------------
// Gates lowered until no more than a given share of the attention edges is open, in the heads where
// that costs the least loss.
//
// What an edge is worth differs between heads by orders of magnitude: one that gathers a whole
// passage may hold a third of all open edges and hardly miss a tenth of them. Each step therefore
// lowers the gate of the one head whose next step costs the least loss for an edge that it closes,
// measured on held-out text. What a head's step costs is measured again when that head was lowered;
// those of others are taken to stay as they were. Of the last step no more is taken than is needed.
// Heads that hold hardly any of the open edges are left as they are.

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

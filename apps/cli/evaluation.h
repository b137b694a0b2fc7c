// The loss of a model on a long text.
//
// The text's n tokens are cut into windows of at most `length` inputs that start every `stride`
// tokens. The target of input i is token i + 1. Where windows overlap only the targets that no
// earlier window had are counted, so that each of the n - 1 targets counts exactly once, with at
// least length - stride tokens of context (except in the first window):
//
//   loss = 1 / (n - 1)  sum_{i=1}^{n-1}  -log p(x_i | x_{b(i)} ... x_{i-1})
//
// where b(i) is the start of the first window that has target i.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.h"
#include "text/token_id.h"

namespace filigree::cli {

struct EvaluationOptions {
  std::int64_t length = 0;  // inputs a window; 0: the model's context
  std::int64_t stride = 0;  // 0: as long as the window, no overlap
  std::int64_t batch = 0;   // windows a forward pass; 0: about 1024 tokens
};

struct Window {
  std::int64_t begin = 0;          // of the inputs
  std::int64_t end = 0;            // one past the last input; also the last target
  std::int64_t first_counted = 0;  // index of the first target that counts
};

// Throws Error unless there are at least two tokens and 0 < stride <= length.
std::vector<Window> windows_of(std::int64_t tokens, std::int64_t length, std::int64_t stride);

struct LossTotal {
  double sum = 0.0;  // of the losses, in nats
  std::int64_t tokens = 0;
  double mean() const { return sum / static_cast<double>(tokens); }
};

// Calls `progress` after every forward pass with the total so far. Throws Error for fewer than two
// ids, ids the model does not have, and windows longer than its context.
LossTotal evaluate(const Model& model, std::span<const TokenId> ids,
                   const EvaluationOptions& options,
                   const std::function<void(const LossTotal&)>& progress = {});

}  // namespace filigree::cli

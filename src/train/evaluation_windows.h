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
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/config.h"
#include "text/token_id.h"
#include "text/token_shards.h"
#include "train/batch.h"

namespace filigree {

struct WindowOptions {
  std::int64_t length = 0;      // inputs a window; 0: the model's context
  std::int64_t stride = 0;      // 0: as long as the window, no overlap; of text only
  std::int64_t batch = 0;       // windows a forward pass; 0: about 1024 tokens
  std::int64_t max_tokens = 0;  // stop at the first window's end from there on; 0: all
  std::int64_t first = 0;       // token to begin with; of shards only
};

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

}  // namespace filigree

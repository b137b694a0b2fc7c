// How much of a sweep runs at once: tokens of a batch of prompts and of a forward pass.
//
// On the CPU a pass is as long as its caches like. A GPU is busy only with many tokens, so there as
// many runs share a pass as fill it and fit its memory.
#pragma once

#include <cstdint>

#include "analyze/circuit/graph.h"
#include "filigree/circuit.h"

namespace filigree {

struct SweepLimits {
  std::int64_t batch_tokens = 1;        // of the prompts of a batch
  std::int64_t pass_tokens = 1;         // of all runs of a forward pass
  std::int64_t pass_rows = INT64_MAX;   // of them, a prompt of a run each
  std::int64_t pass_bytes = INT64_MAX;  // of memory that they take together
};

// Memory of the GPU that the model is on; 0 on the CPU, where no limit follows from it. What a
// sweep's steps are depends on it.
std::int64_t device_memory(const Model& model);

// `memory` as device_memory() gives it. Throw Error when options.tokens_at_once is not positive.
// `experts`: whether single experts of mixtures are patched, whose outputs are then kept.
SweepLimits patch_limits(const PatchOptions& options, std::int64_t memory,
                         const ModelConfig& config, bool experts = false);
SweepLimits edge_limits(const PatchOptions& options, std::int64_t memory,
                        const ModelConfig& config);
// Tokens of a batch that is run backwards too, the heads' inputs and the experts apart or not.
std::int64_t gradient_tokens(const PatchOptions& options, std::int64_t memory,
                             const ModelConfig& config, bool inputs_by_head, bool experts = false);

// Runs that share a pass when each has so many rows and tokens and needs so many bytes: at least
// one.
std::int64_t runs_at_once(const SweepLimits& limits, std::int64_t rows, std::int64_t tokens,
                          std::int64_t bytes);

}  // namespace filigree

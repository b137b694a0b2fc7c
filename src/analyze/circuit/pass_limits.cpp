#include "analyze/circuit/pass_limits.h"

#include <algorithm>

#include "filigree/device.h"
#include "filigree/error.h"

namespace filigree {
namespace {

constexpr std::int64_t kTokensOnCpu = 4096, kTokensOnGpu = 65536;
// On the CPU: each token of a batch has its values of all nodes in memory, at GPT-2 small half a
// megabyte, or the gradients of each head's inputs, 1.5 MB.
constexpr std::int64_t kEdgeBatchOnCpu = 256, kEdgePassOnCpu = 1024;
constexpr std::int64_t kGradientShareOnCpu = 4;
// Experts patched one by one are kept one by one, which the caches do not bound: OLMoE's add 8 MB
// at each token.
constexpr std::int64_t kExpertBytesOnCpu = std::int64_t{1} << 30;

std::int64_t tokens_at_once(const PatchOptions& options, std::int64_t memory) {
  const std::int64_t tokens =
      options.tokens_at_once.value_or(memory > 0 ? kTokensOnGpu : kTokensOnCpu);
  require(tokens > 0, "patching: tokens_at_once is {}; it must be positive", tokens);
  return tokens;
}

std::int64_t at_least_one(std::int64_t value) { return std::max<std::int64_t>(value, 1); }

// Passes may take a third of the memory, what a batch keeps a quarter: weights, and what the
// allocator keeps of freed blocks of other sizes, need the rest.
std::int64_t pass_bytes(std::int64_t memory) { return memory > 0 ? memory / 3 : INT64_MAX; }
// Products by head are batches of matrices, of which CUDA's libraries count 65,535.
std::int64_t pass_rows(std::int64_t memory, const ModelConfig& config) {
  return memory > 0 ? at_least_one(65535 / at_least_one(config.heads)) : INT64_MAX;
}
std::int64_t batch_room(std::int64_t memory, std::int64_t bytes_of_token) {
  return at_least_one(memory / 4 / bytes_of_token);
}

// Of what each expert adds at a token, in all layers.
std::int64_t expert_bytes(const ModelConfig& config) {
  return at_least_one(config.layers * config.experts * config.width *
                      static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace

std::int64_t device_memory(const Model& model) {
  if (model.placement().device == DeviceKind::kCpu) return 0;
  static const std::int64_t memory = [] {
    for (const DeviceInfo& device : list_devices())
      if (device.kind == DeviceKind::kCuda) return static_cast<std::int64_t>(device.memory_bytes);
    return std::int64_t{0};
  }();
  return memory;
}

SweepLimits patch_limits(const PatchOptions& options, std::int64_t memory,
                         const ModelConfig& config, bool experts) {
  const std::int64_t tokens = tokens_at_once(options, memory);
  // Several runs share a pass, so a batch of prompts takes a part of it only.
  SweepLimits limits = {at_least_one(tokens / 8), tokens, pass_rows(memory, config),
                        pass_bytes(memory)};
  if (!experts) return limits;
  const std::int64_t kept = expert_bytes(config);
  limits.batch_tokens =
      std::min(limits.batch_tokens,
               memory > 0 ? batch_room(memory, kept) : at_least_one(kExpertBytesOnCpu / kept));
  if (memory == 0) limits.pass_bytes = kExpertBytesOnCpu;
  return limits;
}

SweepLimits edge_limits(const PatchOptions& options, std::int64_t memory,
                        const ModelConfig& config) {
  const std::int64_t tokens = tokens_at_once(options, memory);
  if (memory == 0)
    return {std::clamp<std::int64_t>(tokens / 4, 1, kEdgeBatchOnCpu),
            std::min(tokens, kEdgePassOnCpu)};
  // Clean, corrupt and their difference of every node.
  const std::int64_t nodes = config.layers * (config.heads + 1) + 1;
  const std::int64_t token = 3 * nodes * config.width * static_cast<std::int64_t>(sizeof(float));
  return {std::min(at_least_one(tokens / 16), batch_room(memory, token)), tokens,
          pass_rows(memory, config), pass_bytes(memory)};
}

std::int64_t gradient_tokens(const PatchOptions& options, std::int64_t memory,
                             const ModelConfig& config, bool inputs_by_head, bool experts) {
  const std::int64_t tokens = tokens_at_once(options, memory);
  // Clean, corrupt, gradient, and what the tape keeps of them.
  const std::int64_t kept = experts ? 8 * expert_bytes(config) : 0;
  if (memory == 0) {
    std::int64_t part = at_least_one(tokens / kGradientShareOnCpu);
    if (experts) part = std::min(part, at_least_one(kExpertBytesOnCpu / kept));
    return inputs_by_head ? std::min(part, kEdgeBatchOnCpu) : part;
  }
  // What a layer keeps for its backward pass: about forty streams, and three for each head's copy.
  std::int64_t streams = 40;
  if (inputs_by_head) streams += 3 * (config.heads + 2 * config.key_heads);
  const std::int64_t token =
      kept + config.layers * streams * config.width * static_cast<std::int64_t>(sizeof(float));
  return std::min(at_least_one(tokens / (inputs_by_head ? 32 : 8)), batch_room(memory, token));
}

std::int64_t runs_at_once(const SweepLimits& limits, std::int64_t rows, std::int64_t tokens,
                          std::int64_t bytes) {
  return at_least_one(
      std::min({limits.pass_rows / at_least_one(rows), limits.pass_tokens / at_least_one(tokens),
                limits.pass_bytes / at_least_one(bytes)}));
}

}  // namespace filigree

#include <algorithm>

#include "filigree/model.h"
#include "filigree/model_study.h"

namespace filigree::study {

MemoryEstimate estimate_memory(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  constexpr std::uint64_t kBytes = 4;
  const auto count = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t L = count(config.layers), d = count(config.width);
  const std::uint64_t queries = count(config.heads * config.head_width);
  const std::uint64_t keys = count(config.key_heads * config.head_width);
  const std::uint64_t hidden = count(config.hidden_width()), V = count(config.vocabulary);
  const std::uint64_t tokens = count(batch) * count(length);

  MemoryEstimate estimate;
  estimate.batch = batch, estimate.length = length;
  estimate.weights = kBytes * count(parameter_count(config));
  // Whichever is larger: a block (stream, normalised stream, and q, k, v, z or the MLP) or the
  // logits with the two streams before them.
  const std::uint64_t block = 2 * d + std::max(2 * queries + 2 * keys, hidden + d);
  estimate.forward = kBytes * tokens * std::max(block, 2 * d + V);
  // A block keeps what its operations made: both normalised streams, what attention and MLP wrote
  // and the two sums; q, k, v and z; the MLP before and after its activation. The loss needs the
  // logits and their gradient.
  const std::uint64_t kept = 6 * d + 2 * queries + 2 * keys + 2 * hidden;
  estimate.training_activations = kBytes * tokens * (L * kept + 4 * d + 2 * V);
  estimate.attention_maps = kBytes * L * count(config.heads) * tokens * count(length);
  estimate.cache = kBytes * tokens * L * 2 * keys;
  return estimate;
}

Json to_json(const MemoryEstimate& estimate) {
  return {{"batch", estimate.batch},
          {"length", estimate.length},
          {"weights", estimate.weights},
          {"forward_activations", estimate.forward},
          {"attention_maps", estimate.attention_maps},
          {"key_value_cache", estimate.cache}};
}

}  // namespace filigree::study

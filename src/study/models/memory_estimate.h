// Memory that a model needs, from its configuration alone. All arithmetic is in f32, so a number
// takes 4 bytes whatever the type it is stored in.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "study/json.h"

namespace filigree::study {

struct MemoryEstimate {
  std::int64_t batch = 0, length = 0;  // what it is for
  std::uint64_t weights = 0;
  std::uint64_t forward = 0;               // activations of a forward pass, nothing kept
  std::uint64_t attention_maps = 0;        // all of them, when kept
  std::uint64_t training_activations = 0;  // kept for the backward pass, and its first gradients
  std::uint64_t cache = 0;                 // keys and values of `length` positions
};

// For inputs of [batch, length].
MemoryEstimate estimate_memory(const ModelConfig& config, std::int64_t batch, std::int64_t length);

Json to_json(const MemoryEstimate& estimate);

}  // namespace filigree::study

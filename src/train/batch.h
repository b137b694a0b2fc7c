// A batch of token windows, as language models are trained and evaluated on.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace filigree {

struct Batch {
  Tensor ids;      // i32 [B, T]
  Tensor targets;  // i32 [B, T]: the token each position predicts
  // Several processes share a global batch by rows: which of them is this one's first.
  std::int64_t first_row = 0;
};

// Targets that count in the loss.
std::int64_t counted_targets(const Batch& batch);

}  // namespace filigree

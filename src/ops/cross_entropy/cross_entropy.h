// Cross entropy of next-token predictions.
#pragma once

#include <cstdint>

#include "autograd/variable.h"

namespace filigree {

// Targets with this id take no part in the loss (the convention of Hugging Face labels).
inline constexpr std::int32_t kIgnoredTarget = -100;

// logits [..., V], targets i32 of the leading shape -> mean of -log softmax(logits)[target] over
// the targets that are not ignored. With `per_token`, that tensor receives each position's loss (0
// where ignored). Throws Error for a target outside [0, V) or when all are ignored.
Variable cross_entropy(const Variable& logits, const Tensor& targets, Tensor* per_token = nullptr);

}  // namespace filigree

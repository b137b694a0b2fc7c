// Checks shared by the attention operations.
#pragma once

#include "ops/attention/attention_kernels.h"
#include "tensor/shape.h"

namespace filigree {

// Throws Error starting with `op` unless q [B, Tq, H, D] and k [B, Tk, G, D] fit together.
AttentionShape attention_shape(const char* op, const Shape& q, const Shape& k, std::int64_t keys,
                               float scale);

}  // namespace filigree

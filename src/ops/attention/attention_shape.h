// Checks shared by the attention operations.
#pragma once

#include <initializer_list>

#include "filigree/ops.h"
#include "filigree/tensor.h"
#include "ops/attention/attention_kernels.h"

namespace filigree {

// Throws Error starting with `op` unless q [B, Tq, H, D] and k [B, Tk, G, D] fit together.
AttentionShape attention_shape(const char* op, const Shape& q, const Shape& k, std::int64_t keys,
                               float scale, const ScoreMask& mask = {});

// Throws Error starting with `op` unless all lie on one device and have one element type.
void require_alike(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace filigree

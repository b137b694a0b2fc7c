// A linear layer whose outputs belong to heads, each of which reads an input of its own.
#pragma once

#include <cstdint>

#include "filigree/ops.h"

namespace filigree {

// x [..., heads, in] -> [..., heads, outputs / heads]: head h of the result is x[..., h, :] times
// the h-th part of the outputs of `w`, with its part of the bias. For equal inputs of all heads
// this is the linear layer. Gradients flow to x, weight and bias. Throws Error for shapes that do
// not fit.
Variable linear_by_head(const Variable& x, const LinearWeight& w);

// x [..., d] -> [..., count, d], the same for each; gradients are summed.
Variable repeat_for_heads(const Variable& x, std::int64_t count);

}  // namespace filigree

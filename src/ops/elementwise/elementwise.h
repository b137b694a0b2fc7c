// Elementwise operations. The binary ones broadcast as NumPy does: shapes are aligned at their last
// axis and an extent of 1 (or a missing one) repeats. Gradients of a repeated operand are summed.
// On the GPU f32 beside bf16 (a parameter beside an activation) gives bf16.
#pragma once

#include "autograd/variable.h"

namespace filigree {

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);

Variable scale(const Variable& x, float factor);
Variable shift(const Variable& x, float offset);
// Within [-bound, bound]; what lies outside has no gradient.
Variable clamp(const Variable& x, float bound);
// bound * tanh(x / bound), the soft form of it.
Variable soft_cap(const Variable& x, float bound);

Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable square(const Variable& x);
Variable tanh(const Variable& x);

// The shape of a (op) b; throws Error when an extent neither agrees nor is 1.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

}  // namespace filigree

// Layer normalisation over the last axis:
//   y = (x - mean) / sqrt(variance + epsilon) * weight + bias
#pragma once

#include "filigree/autograd/variable.h"

namespace filigree {

// x [..., d], weight [d], bias [d]; gradients flow to all three. Throws Error for other shapes.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, float epsilon);

}  // namespace filigree

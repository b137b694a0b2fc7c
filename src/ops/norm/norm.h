// Normalisation over the last axis:
//   layer_norm   y = (x - mean) / sqrt(variance + epsilon) * weight + bias
//   rms_norm     y = x / sqrt(mean of x^2 + epsilon) * weight
#pragma once

#include "autograd/variable.h"

namespace filigree {

// x [..., d], weight [d], bias [d] or undefined; gradients flow to all of them. Throws Error for
// other shapes.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, float epsilon);

// x [..., d], weight [d]; gradients flow to both. Throws Error for other shapes.
Variable rms_norm(const Variable& x, const Variable& weight, float epsilon);

}  // namespace filigree

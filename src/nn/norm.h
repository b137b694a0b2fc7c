// Normalisation layers with their taps: hook_scale (the denominator, [..., 1]) and hook_normalized
// (the result).
#pragma once

#include "filigree/autograd/variable.h"
#include "filigree/nn/taps.h"

namespace filigree {

struct NormWeights {
  Variable weight;
  Variable bias;
  float epsilon = 1e-5f;
};

Variable layer_norm(const Variable& x, const NormWeights& weights, const TapScope& tap);

}  // namespace filigree

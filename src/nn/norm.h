// Normalisation layers with their taps: hook_scale (the denominator, [..., 1]) and hook_normalized
// (the result: what the layers behind the norm read, its weight and bias applied).
#pragma once

#include "filigree/autograd/variable.h"
#include "filigree/nn/taps.h"

namespace filigree {

enum class NormKind {
  kLayer,  // by the standard deviation, around the mean
  kRms,    // by the root mean square
};

struct NormWeights {
  Variable weight;
  Variable bias;  // undefined: none
  float epsilon = 1e-5f;
  NormKind kind = NormKind::kLayer;

  // Whether the mean is taken off: then nothing behind the norm sees the mean of its input, and
  // analyses of weights may take it off the weights too.
  bool centres() const { return kind == NormKind::kLayer; }
};

Variable normalise(const Variable& x, const NormWeights& weights, const TapScope& tap);

}  // namespace filigree

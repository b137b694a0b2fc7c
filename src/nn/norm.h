// Normalisation layers with their taps: hook_scale (the denominator, [..., 1]) and hook_normalized
// (the result: what the layers behind the norm read, its weight and bias applied). Where there is
// no norm the value passes as it is, and there are no taps.
#pragma once

#include "autograd/variable.h"
#include "nn/taps.h"

namespace filigree {

enum class NormKind {
  kLayer,  // by the standard deviation, around the mean
  kRms,    // by the root mean square
  kNone,   // no norm at this place
};

struct NormWeights {
  Variable weight;
  Variable bias;  // undefined: none
  float epsilon = 1e-5f;
  NormKind kind = NormKind::kLayer;
  bool around_one = false;  // the weight says how far the gain is from 1

  bool on() const { return kind != NormKind::kNone; }
  // What the normalised values are multiplied with. Analyses of weights read this one.
  Variable gain() const;

  // Whether the mean is taken off: then nothing behind the norm sees the mean of its input, and
  // analyses of weights may take it off the weights too.
  bool centres() const { return kind == NormKind::kLayer; }
};

inline const NormWeights kNoNorm = {.weight = {}, .bias = {}, .kind = NormKind::kNone};

Variable normalise(const Variable& x, const NormWeights& weights, const TapScope& tap);

}  // namespace filigree

// The two-layer perceptron of a block, with taps hook_pre and hook_post around its GELU.
#pragma once

#include "filigree/nn/taps.h"
#include "filigree/ops/linear/linear.h"

namespace filigree {

struct MlpWeights {
  LinearWeight in;   // width -> hidden
  LinearWeight out;  // hidden -> width
};

Variable mlp(const Variable& x, const MlpWeights& weights, const TapScope& tap);

}  // namespace filigree

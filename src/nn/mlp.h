// The perceptron of a block,
//
//   plain   f(x W_in) W_out
//   gated   (f(x W_gate) * x W_in) W_out,
//
// with taps hook_pre and hook_post before and after f, and in a gated one hook_pre_linear, what the
// gate is multiplied with; hook_post is then the product.
#pragma once

#include "nn/taps.h"
#include "ops/linear/linear.h"

namespace filigree {

struct MlpWeights {
  LinearWeight in;         // width -> hidden
  LinearWeight out;        // hidden -> width
  LinearWeight gate = {};  // width -> hidden; without a weight the MLP is plain
  Activation activation = Activation::kGeluNew;
};

Variable mlp(const Variable& x, const MlpWeights& weights, const TapScope& tap);

}  // namespace filigree

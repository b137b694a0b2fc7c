// A mixture of experts in the place of a block's MLP (filigree/layers.h).
#pragma once

#include "filigree/layers.h"

namespace filigree {

Variable mixture_of_experts(const Variable& x, const MlpWeights& weights, const TapScope& tap);

}  // namespace filigree

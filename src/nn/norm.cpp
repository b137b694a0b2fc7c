#include "filigree/nn/norm.h"

#include "filigree/ops/elementwise/elementwise.h"
#include "filigree/ops/layer_norm/layer_norm.h"
#include "filigree/ops/reduce/reduce.h"

namespace filigree {

Variable layer_norm(const Variable& x, const NormWeights& weights, const TapScope& tap) {
  if (!tap.wants("hook_scale"))
    return tap("hook_normalized", layer_norm(x, weights.weight, weights.bias, weights.epsilon));
  // Spelled out, so that the denominator can be read, changed or frozen.
  const Variable centred = sub(x, mean(x, -1, true));
  const Variable variance = mean(square(centred), -1, true);  // [..., 1]
  const Variable scale = tap("hook_scale", sqrt(shift(variance, weights.epsilon)));
  const Variable normalized = div(centred, scale);
  return tap("hook_normalized", add(mul(normalized, weights.weight), weights.bias));
}

}  // namespace filigree

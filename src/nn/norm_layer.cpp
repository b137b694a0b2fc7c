#include "filigree/layers.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

Variable fused(const Variable& x, const NormWeights& w) {
  return w.centres() ? layer_norm(x, w.gain(), w.bias, w.epsilon)
                     : rms_norm(x, w.gain(), w.epsilon);
}

}  // namespace

Variable NormWeights::gain() const { return around_one ? shift(weight, 1.0f) : weight; }

Variable normalise(const Variable& x, const NormWeights& weights, const TapScope& tap) {
  if (!weights.on()) return x;
  const bool early = weights.tap_before_gain;
  if (!tap.wants("hook_scale") && !(early && tap.wants("hook_normalized"))) {
    const Variable y = fused(x, weights);
    return early ? y : tap("hook_normalized", y);
  }
  // Spelled out, so that the denominator can be read, changed or frozen.
  const Variable centred = weights.centres() ? sub(x, mean(x, -1, true)) : x;
  const Variable variance = mean(square(centred), -1, true);  // [..., 1]
  const Variable scale = tap("hook_scale", sqrt(shift(variance, weights.epsilon)));
  Variable y = div(centred, scale);
  if (early) y = tap("hook_normalized", y);
  y = mul(y, weights.gain());
  if (weights.bias.defined()) y = add(y, weights.bias);
  return early ? y : tap("hook_normalized", y);
}

}  // namespace filigree

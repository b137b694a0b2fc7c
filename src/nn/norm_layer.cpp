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
  if (!tap.wants("hook_scale")) return tap("hook_normalized", fused(x, weights));
  // Spelled out, so that the denominator can be read, changed or frozen.
  const Variable centred = weights.centres() ? sub(x, mean(x, -1, true)) : x;
  const Variable variance = mean(square(centred), -1, true);  // [..., 1]
  const Variable scale = tap("hook_scale", sqrt(shift(variance, weights.epsilon)));
  const Variable scaled = mul(div(centred, scale), weights.gain());
  return tap("hook_normalized", weights.bias.defined() ? add(scaled, weights.bias) : scaled);
}

}  // namespace filigree

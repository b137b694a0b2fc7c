#include "filigree/layers.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

Variable fused(const Variable& x, const NormWeights& w, const Variable& gain) {
  return w.centres() ? layer_norm(x, gain, w.bias, w.epsilon) : rms_norm(x, gain, w.epsilon);
}

// Of hook_normalized, which has no factor yet.
Variable own_gain(const NormWeights& w) {
  const Variable weight = w.by_head.empty() ? w.weight : concat(w.by_head, 0);
  const Variable gain = w.around_one ? shift(weight, 1.0f) : weight;
  return w.heads > 0 ? reshape(gain, {w.heads, gain.size(0) / w.heads}) : gain;
}

Variable times(const Variable& x, float factor) { return factor != 1.0f ? scale(x, factor) : x; }

}  // namespace

Variable NormWeights::gain() const { return times(own_gain(*this), factor); }

Variable normalise(const Variable& x, const NormWeights& weights, const TapScope& tap) {
  if (!weights.on()) return x;
  const bool early = weights.tap_before_gain;
  if (weights.heads == 0 && !tap.wants("hook_scale") && !(early && tap.wants("hook_normalized"))) {
    const Variable y = fused(x, weights, own_gain(weights));
    return times(early ? y : tap("hook_normalized", y), weights.factor);
  }
  // Spelled out, so that the denominator can be read, changed or frozen.
  const Variable centred = weights.centres() ? sub(x, mean(x, -1, true)) : x;
  const Variable variance = mean(square(centred), -1, true);  // [..., 1]
  const Variable scale = tap("hook_scale", sqrt(shift(variance, weights.epsilon)));
  Variable y = div(centred, scale);
  if (early) y = tap("hook_normalized", y);
  y = mul(y, own_gain(weights));
  if (weights.bias.defined()) y = add(y, weights.bias);
  return times(early ? y : tap("hook_normalized", y), weights.factor);
}

}  // namespace filigree

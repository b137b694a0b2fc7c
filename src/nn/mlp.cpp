#include "filigree/nn/mlp.h"

#include "filigree/ops/elementwise/elementwise.h"

namespace filigree {

Variable mlp(const Variable& x, const MlpWeights& weights, const TapScope& tap) {
  if (!tap.wants("hook_pre") && !tap.wants("hook_post"))
    return feed_forward(x, weights.in, weights.out);
  Variable hidden;  // [..., hidden]
  if (tap.needs_graph("hook_pre")) {
    hidden = gelu(tap("hook_pre", linear(x, weights.in)));
  } else {
    Tensor pre;
    hidden = linear(x, weights.in, Activation::kGelu, tap.wants("hook_pre") ? &pre : nullptr);
    if (pre.defined()) tap("hook_pre", pre);
  }
  return linear(tap("hook_post", hidden), weights.out);
}

}  // namespace filigree

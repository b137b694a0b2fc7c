#include "filigree/layers.h"
#include "filigree/ops.h"
#include "nn/mixture.h"

namespace filigree {
namespace {

Variable gated(const Variable& x, const MlpWeights& weights, const TapScope& tap) {
  const Variable gate = tap("hook_pre", linear(x, weights.gate));
  const Variable up = tap("hook_pre_linear", linear(x, weights.in));
  Variable product = gated_product(gate, up, weights.activation);
  if (weights.product_bias.defined()) product = add(product, weights.product_bias);
  return linear(tap("hook_post", product), weights.out);
}

Variable solu(const Variable& x, const MlpWeights& weights, const TapScope& tap) {
  const Variable pre = tap("hook_pre", linear(x, weights.in));
  Variable hidden = mul(pre, softmax(pre));
  if (weights.norm.on())
    hidden = normalise(tap("hook_mid", hidden), weights.norm, tap.inside("ln"));
  return linear(tap("hook_post", hidden), weights.out);
}

}  // namespace

Variable mlp(const Variable& x, const MlpWeights& weights, const TapScope& tap) {
  if (!weights.experts.empty()) return mixture_of_experts(x, weights, tap);
  if (weights.gate.weight.defined()) return gated(x, weights, tap);
  if (weights.solu) return solu(x, weights, tap);
  const Activation f = weights.activation;
  if (!tap.wants("hook_pre") && !tap.wants("hook_post"))
    return feed_forward(x, weights.in, weights.out, f);
  Variable hidden;  // [..., hidden]
  if (tap.needs_graph("hook_pre")) {
    hidden = activate(tap("hook_pre", linear(x, weights.in)), f);
  } else {
    Tensor pre;
    hidden = linear(x, weights.in, f, tap.wants("hook_pre") ? &pre : nullptr);
    if (pre.defined()) tap("hook_pre", pre);
  }
  return linear(tap("hook_post", hidden), weights.out);
}

}  // namespace filigree

#include "ops/cross_entropy/cross_entropy.h"

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/cross_entropy/cross_entropy_kernels.h"

namespace filigree {

Variable cross_entropy(const Variable& logits, const Tensor& targets, Tensor* per_token) {
  require(logits.shape().rank() >= 1 && logits.size(-1) > 0,
          "cross_entropy: the logits {} have no vocabulary axis", logits.shape().to_string());
  const std::int64_t V = logits.size(-1), rows = logits.shape().elements() / V;
  require(targets.elements() == rows, "cross_entropy: {} targets for logits {}", targets.elements(),
          logits.shape().to_string());
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int32_t target = targets.i32()[i];
    if (target == kIgnoredTarget) continue;
    if (target < 0 || target >= V)
      fail("cross_entropy: target {} at position {} is not within the vocabulary of {}", target, i,
           V);
    ++counted;
  }
  require(counted > 0, "cross_entropy: no target to predict among {} positions", rows);
  Tensor losses = Tensor::empty(targets.shape()), lse = Tensor::empty({rows});
  cpu::cross_entropy(
      {rows, V, logits.value().f32(), targets.i32(), losses.mutable_f32(), lse.mutable_f32()});
  double total = 0.0;
  for (float loss : losses.values()) total += static_cast<double>(loss);
  const auto mean = static_cast<float>(total / static_cast<double>(counted));
  if (per_token != nullptr) *per_token = losses;

  return make_result(Tensor::scalar(mean), {&logits},
                     [logits, targets, lse, rows, V, counted](const Tensor& grad) {
                       Tensor dlogits = Tensor::empty(logits.shape());
                       const float factor = grad.item() / static_cast<float>(counted);
                       cpu::cross_entropy_grad({rows, V, logits.value().f32(), targets.i32(),
                                                lse.f32(), factor, dlogits.mutable_f32()});
                       logits.accumulate_grad(std::move(dlogits));
                     });
}

}  // namespace filigree

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/cross_entropy/cross_entropy_kernels.h"
#include "ops/cross_entropy/targets.h"
#include "ops/reduce/total.h"
#include "tensor/dispatch.h"

namespace filigree {

Variable cross_entropy(const Variable& logits, const Tensor& targets, Tensor* per_token) {
  require(logits.shape().rank() >= 1 && logits.size(-1) > 0,
          "cross_entropy: the logits {} have no vocabulary axis", logits.shape().to_string());
  const std::int64_t V = logits.size(-1), rows = logits.shape().elements() / V;
  const std::int64_t counted = count_targets("cross_entropy", targets, rows, V);
  const DeviceKind device = logits.value().device();
  const Tensor places = targets.to(device);
  Tensor losses = Tensor::empty(targets.shape(), DType::kF32, device);
  Tensor lse = losses.like({rows});
  const auto args = [&](auto type) {
    using T = decltype(type);
    return CrossEntropyArgs<T>{rows,
                               V,
                               logits.value().data<T>(),
                               places.data<std::int32_t>(),
                               losses.mutable_data<float>(),
                               lse.mutable_data<float>()};
  };
  dispatch(
      "cross_entropy", logits.value(), [&] { cpu::cross_entropy(args(float())); },
      [&](auto type) { cuda::cross_entropy(args(type)); });
  const Tensor mean = total(losses, 1.0 / static_cast<double>(counted));
  if (per_token != nullptr) *per_token = losses;

  return make_result(mean, {&logits}, [logits, places, lse, rows, V, counted](const Tensor& grad) {
    Tensor dlogits = logits.last_use() ? logits.value() : logits.value().like(logits.shape());
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return CrossEntropyGradArgs<T>{rows,
                                     V,
                                     logits.value().data<T>(),
                                     places.data<std::int32_t>(),
                                     lse.data<float>(),
                                     1.0f / static_cast<float>(counted),
                                     grad.data<float>(),
                                     dlogits.mutable_data<T>()};
    };
    dispatch(
        "cross_entropy", dlogits,
        [&] {
          CrossEntropyGradArgs<> on_cpu = grad_args(float());
          on_cpu.factor = grad.item() / static_cast<float>(counted);
          on_cpu.upstream = nullptr;
          cpu::cross_entropy_grad(on_cpu);
        },
        [&](auto type) { cuda::cross_entropy_grad(grad_args(type)); });
    logits.accumulate_grad(std::move(dlogits));
  });
}

}  // namespace filigree

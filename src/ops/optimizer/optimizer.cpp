#include "ops/optimizer/optimizer.h"

#include <cmath>

#include "base/error.h"
#include "ops/optimizer/optimizer_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {

void adamw_step(const AdamWStep& step, const Tensor& gradient, Tensor& weight, Tensor& first_moment,
                Tensor& second_moment, Tensor* bf16_copy) {
  require(gradient.shape() == weight.shape() && first_moment.shape() == weight.shape() &&
              second_moment.shape() == weight.shape(),
          "adamw_step: gradient {} and moments {}, {} do not fit a weight of {}",
          gradient.shape().to_string(), first_moment.shape().to_string(),
          second_moment.shape().to_string(), weight.shape().to_string());
  require(step.step >= 1, "adamw_step: steps count from 1, this is {}", step.step);
  const auto t = static_cast<double>(step.step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(step.beta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(step.beta2), t);
  const auto lr = static_cast<double>(step.learning_rate);
  AdamWArgs args;
  args.count = weight.elements();
  args.decay = static_cast<float>(1.0 - lr * static_cast<double>(step.weight_decay));
  args.beta1 = step.beta1, args.beta2 = step.beta2, args.epsilon = step.epsilon;
  args.gradient_scale = step.gradient_scale;
  args.step_size = static_cast<float>(lr / correction1);
  args.second_scale = static_cast<float>(1.0 / std::sqrt(correction2));
  args.gradient = gradient.data<float>();
  args.weight = weight.mutable_data<float>();
  args.first = first_moment.mutable_data<float>();
  args.second = second_moment.mutable_data<float>();
  for (const Tensor* other : {&gradient, static_cast<const Tensor*>(&first_moment),
                              static_cast<const Tensor*>(&second_moment)})
    require_same_device("adamw_step", weight, *other);
  if (!weight.on_gpu()) {
    require(bf16_copy == nullptr, "adamw_step: only weights on the GPU have a bf16 copy");
    cpu::adamw(args);
    return;
  }
  if (bf16_copy != nullptr) args.copy = bf16_copy->mutable_data<Bf16>();
  if constexpr (kHasCuda) cuda::adamw(args);
}

double global_norm(const std::vector<Tensor>& tensors) {
  double total = 0.0;
  std::vector<SquaresArgs> on_gpu;
  for (const Tensor& tensor : tensors) {
    if (tensor.elements() == 0) continue;
    if (tensor.on_gpu())
      on_gpu.push_back({tensor.data<float>(), tensor.elements()});
    else
      total += cpu::sum_of_squares(tensor.f32(), tensor.elements());
  }
  if constexpr (kHasCuda)
    if (!on_gpu.empty())
      total += cuda::sum_of_squares(on_gpu.data(), static_cast<std::int64_t>(on_gpu.size()));
  return std::sqrt(total);
}

}  // namespace filigree

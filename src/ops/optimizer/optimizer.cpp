#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/optimizer/optimizer_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {

namespace {

AdamWArgs arguments(AdamWUpdate& update) {
  const AdamWStep& step = update.step;
  const Shape& shape = update.weight.shape();
  require(update.gradient.shape() == shape && update.first_moment.shape() == shape &&
              update.second_moment.shape() == shape,
          "adamw: gradient {} and moments {}, {} do not fit a weight of {}",
          update.gradient.shape().to_string(), update.first_moment.shape().to_string(),
          update.second_moment.shape().to_string(), shape.to_string());
  for (const Tensor* other : {&update.gradient, &update.first_moment, &update.second_moment})
    require_same_device("adamw", update.weight, *other);
  require(step.step >= 1, "adamw: steps count from 1, this is {}", step.step);
  require(!update.bf16_copy.defined() || update.weight.on_gpu(),
          "adamw: only weights on the GPU have a bf16 copy");
  const auto t = static_cast<double>(step.step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(step.beta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(step.beta2), t);
  const auto lr = static_cast<double>(step.learning_rate);
  AdamWArgs args;
  args.count = update.weight.elements();
  args.decay = static_cast<float>(1.0 - lr * static_cast<double>(step.weight_decay));
  args.beta1 = step.beta1, args.beta2 = step.beta2, args.epsilon = step.epsilon;
  args.gradient_scale = step.gradient_scale;
  args.step_size = static_cast<float>(lr / correction1);
  args.second_scale = static_cast<float>(1.0 / std::sqrt(correction2));
  args.gradient = update.gradient.data<float>();
  args.weight = update.weight.mutable_data<float>();
  args.first = update.first_moment.mutable_data<float>();
  args.second = update.second_moment.mutable_data<float>();
  if (update.bf16_copy.defined()) args.copy = update.bf16_copy.mutable_data<Bf16>();
  return args;
}

}  // namespace

void adamw_steps(std::vector<AdamWUpdate> updates) {
  std::vector<AdamWArgs> on_gpu;
  for (AdamWUpdate& update : updates) {
    const AdamWArgs args = arguments(update);
    if (update.weight.on_gpu())
      on_gpu.push_back(args);
    else
      cpu::adamw(args);
  }
  if constexpr (kHasCuda) cuda::adamw(on_gpu.data(), static_cast<std::int64_t>(on_gpu.size()));
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

#include <utility>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/norm/norm_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

void check(const char* op, const Variable& x, const char* what, const Variable& parameter) {
  require(parameter.shape() == Shape{x.size(-1)}, "{}: the {} {} does not fit an input of {}", op,
          what, parameter.shape().to_string(), x.shape().to_string());
  require_same_device(op, x.value(), parameter.value());
}

// What the backward pass needs of the forward one.
struct Statistics {
  std::int64_t rows, width;
  Tensor mean;  // undefined when nothing is centred
  Tensor inverse;
};

void add_gradients(const char* op, const Variable& x, const Variable& weight, const Variable& bias,
                   const Statistics& of, const Tensor& grad) {
  // The residual stream's gradient is there already: it is added to.
  const bool wanted = x.requires_grad(), add = x.grad().defined();
  Tensor dx = wanted && !add ? x.value().like(x.shape()) : Tensor();
  const auto args = [&](auto type) {
    using T = decltype(type);
    NormGradArgs<T> back{of.rows,
                         of.width,
                         x.value().data<T>(),
                         weight.value().data<float>(),
                         of.mean.defined() ? of.mean.data<float>() : nullptr,
                         of.inverse.data<float>(),
                         grad.data<T>()};
    if (wanted) back.dx = (add ? x.grad_to_add_into() : dx).template mutable_data<T>();
    back.add_to_dx = add;
    if (weight.requires_grad()) back.dweight = weight.grad_to_add_into().mutable_data<float>();
    if (bias.requires_grad()) back.dbias = bias.grad_to_add_into().mutable_data<float>();
    return back;
  };
  dispatch(
      op, grad, [&] { cpu::norm_grad(args(float())); },
      [&](auto type) { cuda::norm_grad(args(type)); });
  if (dx.defined()) x.accumulate_grad(std::move(dx));
}

Variable normalised(const char* op, const Variable& x, const Variable& weight, const Variable& bias,
                    float epsilon, bool centred) {
  require(x.shape().rank() >= 1, "{}: the input is a single number", op);
  const std::int64_t width = x.size(-1);
  require(width > 0, "{}: the input {} has no last axis to normalise", op, x.shape().to_string());
  check(op, x, "weight", weight);
  if (bias.defined()) check(op, x, "bias", bias);
  const std::int64_t rows = x.shape().elements() / width;
  Tensor y = x.value().like(x.shape());
  Statistics of = {rows, width, centred ? y.like({rows}, DType::kF32) : Tensor(),
                   y.like({rows}, DType::kF32)};
  const auto args = [&](auto type) {
    using T = decltype(type);
    return NormArgs<T>{rows,
                       width,
                       epsilon,
                       x.value().data<T>(),
                       weight.value().data<float>(),
                       bias.defined() ? bias.value().data<float>() : nullptr,
                       y.mutable_data<T>(),
                       centred ? of.mean.mutable_data<float>() : nullptr,
                       of.inverse.mutable_data<float>()};
  };
  dispatch(
      op, y, [&] { cpu::norm(args(float())); }, [&](auto type) { cuda::norm(args(type)); });
  return make_result(std::move(y), {&x, &weight, &bias},
                     [op, x, weight, bias, of = std::move(of)](const Tensor& grad) {
                       add_gradients(op, x, weight, bias, of, grad);
                     });
}

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    float epsilon) {
  return normalised("layer_norm", x, weight, bias, epsilon, true);
}

Variable rms_norm(const Variable& x, const Variable& weight, float epsilon) {
  return normalised("rms_norm", x, weight, Variable(), epsilon, false);
}

}  // namespace filigree

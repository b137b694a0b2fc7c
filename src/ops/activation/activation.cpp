#include <utility>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/activation/activation_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {

Variable activate(const Variable& x, Activation f) {
  Tensor y = x.value().like(x.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return ActivationArgs<T>{f, y.elements(), x.value().data<T>(), y.mutable_data<T>()};
  };
  dispatch(
      "activate", y, [&] { cpu::activate(args(float())); },
      [&](auto type) { cuda::activate(args(type)); });
  return make_result(std::move(y), {&x}, [x, f](const Tensor& grad) {
    x.accumulate_grad(activation_gradient(f, x.value(), grad));
  });
}

Tensor activation_gradient(Activation f, const Tensor& x, const Tensor& grad) {
  Tensor dx = grad.like(grad.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return ActivationGradArgs<T>{f, grad.elements(), x.data<T>(), grad.data<T>(),
                                 dx.mutable_data<T>()};
  };
  dispatch(
      "activate", grad, [&] { cpu::activation_grad(args(float())); },
      [&](auto type) { cuda::activation_grad(args(type)); });
  return dx;
}

Variable gated_product(const Variable& gate, const Variable& up, Activation f) {
  require(gate.shape() == up.shape(),
          "gated_product: the gate {} and what it multiplies, {}, "
          "differ in shape",
          gate.shape().to_string(), up.shape().to_string());
  require_same_device("gated_product", gate.value(), up.value());
  Tensor y = gate.value().like(gate.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return GatedProductArgs<T>{f, y.elements(), gate.value().data<T>(), up.value().data<T>(),
                               y.mutable_data<T>()};
  };
  dispatch(
      "gated_product", y, [&] { cpu::gated_product(args(float())); },
      [&](auto type) { cuda::gated_product(args(type)); });
  return make_result(std::move(y), {&gate, &up}, [gate, up, f](const Tensor& grad) {
    Tensor dgate = gate.requires_grad() ? grad.like(grad.shape()) : Tensor();
    Tensor dup = up.requires_grad() ? grad.like(grad.shape()) : Tensor();
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return GatedProductGradArgs<T>{f,
                                     grad.elements(),
                                     gate.value().data<T>(),
                                     up.value().data<T>(),
                                     grad.data<T>(),
                                     dgate.defined() ? dgate.mutable_data<T>() : nullptr,
                                     dup.defined() ? dup.mutable_data<T>() : nullptr};
    };
    dispatch(
        "gated_product", grad, [&] { cpu::gated_product_grad(grad_args(float())); },
        [&](auto type) { cuda::gated_product_grad(grad_args(type)); });
    if (dgate.defined()) gate.accumulate_grad(std::move(dgate));
    if (dup.defined()) up.accumulate_grad(std::move(dup));
  });
}

}  // namespace filigree

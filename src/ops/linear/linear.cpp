#include "filigree/ops/linear/linear.h"

#include "filigree/autograd/tape.h"
#include "filigree/base/error.h"
#include "filigree/ops/linear/linear_kernels.h"
#include "filigree/ops/linear/linear_products.h"
#include "filigree/tensor/dispatch.h"

namespace filigree {
namespace {

Tensor gelu_gradient(const Tensor& pre, const Tensor& grad) {
  Tensor dpre = grad.like(grad.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return GeluGradArgs<T>{grad.elements(), pre.data<T>(), grad.data<T>(), dpre.mutable_data<T>()};
  };
  dispatch(
      "linear", grad, [&] { cpu::gelu_grad(args(float())); },
      [&](auto type) { cuda::gelu_grad(args(type)); });
  return dpre;
}

}  // namespace

Variable linear(const Variable& x, const LinearWeight& w, Activation activation,
                Tensor* pre_activation) {
  check_linear(x, w);
  Tensor y = x.value().like(linear_shape(x, w));
  const bool gelu = activation == Activation::kGelu;
  const bool recorded = needs_grad({&x, &w.weight, &w.bias});
  Tensor pre = gelu && (recorded || pre_activation != nullptr) ? y.like(y.shape()) : Tensor();
  multiply_linear(x, w, y, false, gelu ? GemmEpilogue::kGelu : GemmEpilogue::kNone, pre);
  if (pre_activation != nullptr) *pre_activation = pre;

  return make_result(std::move(y), {&x, &w.weight, &w.bias},
                     [x, w, pre](const Tensor& grad) mutable {
                       if (!pre.defined()) return add_gradients(x, w, grad);
                       const Tensor dpre = gelu_gradient(pre, grad);
                       pre = Tensor();
                       add_gradients(x, w, dpre);
                     });
}

Variable linear_sum(const Variable& x, const LinearWeight& w, const Variable& h,
                    const LinearWeight& u) {
  check_linear(x, w);
  check_linear(h, u);
  const Shape shape = linear_shape(x, w);
  require(shape == linear_shape(h, u), "linear_sum: the summands {} and {} differ",
          shape.to_string(), linear_shape(h, u).to_string());
  Tensor y = x.value().like(shape);
  multiply_linear(x, w, y, false);
  multiply_linear(h, u, y, true);
  return make_result(std::move(y), {&x, &w.weight, &w.bias, &h, &u.weight, &u.bias},
                     [x, w, h, u](const Tensor& grad) {
                       add_gradients(x, w, grad);
                       add_gradients(h, u, grad);
                     });
}

Variable feed_forward(const Variable& x, const LinearWeight& in, const LinearWeight& out) {
  check_linear(x, in);
  Tensor hidden = x.value().like(linear_shape(x, in));
  check_linear(Variable(hidden), out);
  const bool recorded = needs_grad({&x, &in.weight, &in.bias, &out.weight, &out.bias});
  Tensor pre = recorded ? hidden.like(hidden.shape()) : Tensor();
  multiply_linear(x, in, hidden, false, GemmEpilogue::kGelu, pre);
  Tensor y = x.value().like(linear_shape(Variable(hidden), out));
  multiply_linear(hidden, out, y, false);
  return make_result(std::move(y), {&x, &in.weight, &in.bias, &out.weight, &out.bias},
                     [x, in, out, hidden, pre](const Tensor& grad) mutable {
                       add_parameter_gradients(hidden, out, grad);
                       // In the memory of the hidden values, which nothing reads any more.
                       input_gradient(out, grad, hidden, false, std::move(pre));
                       pre = Tensor();
                       add_gradients(x, in, hidden);
                     });
}

}  // namespace filigree

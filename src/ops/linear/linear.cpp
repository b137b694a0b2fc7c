#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/linear/linear_products.h"

namespace filigree {

Variable linear(const Variable& x, const LinearWeight& w, Activation f, Tensor* pre_activation) {
  check_linear(x, w);
  Tensor y = x.value().like(linear_shape(x, w));
  const bool active = f != Activation::kNone;
  const bool recorded = needs_grad({&x, &w.weight, &w.bias});
  Tensor pre = active && (recorded || pre_activation != nullptr) ? y.like(y.shape()) : Tensor();
  multiply_linear(x, w, y, false, f, pre);
  if (pre_activation != nullptr) *pre_activation = pre;

  return make_result(std::move(y), {&x, &w.weight, &w.bias},
                     [x, w, f, pre](const Tensor& grad) mutable {
                       if (!pre.defined()) return add_gradients(x, w, grad);
                       const Tensor dpre = activation_gradient(f, pre, grad);
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

Variable feed_forward(const Variable& x, const LinearWeight& in, const LinearWeight& out,
                      Activation f) {
  require(f != Activation::kNone, "feed_forward: two layers without an activation are one");
  check_linear(x, in);
  Tensor hidden = x.value().like(linear_shape(x, in));
  check_linear(Variable(hidden), out);
  const bool recorded = needs_grad({&x, &in.weight, &in.bias, &out.weight, &out.bias});
  Tensor pre = recorded ? hidden.like(hidden.shape()) : Tensor();
  multiply_linear(x, in, hidden, false, f, pre);
  Tensor y = x.value().like(linear_shape(Variable(hidden), out));
  multiply_linear(hidden, out, y, false);
  return make_result(std::move(y), {&x, &in.weight, &in.bias, &out.weight, &out.bias},
                     [x, in, out, f, hidden, pre](const Tensor& grad) mutable {
                       add_parameter_gradients(hidden, out, grad);
                       // In the memory of the hidden values, which nothing reads any more.
                       input_gradient(out, grad, hidden, false, f, std::move(pre));
                       pre = Tensor();
                       add_gradients(x, in, hidden);
                     });
}

}  // namespace filigree

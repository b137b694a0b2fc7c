#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/rotary/rotary_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

Tensor turned(const Tensor& x, const Tensor& cos, const Tensor& sin, bool back) {
  Tensor y = x.like(x.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return RotaryArgs<T>{x.size(0) * x.size(1),
                         x.size(1),
                         x.size(2),
                         x.size(3),
                         cos.size(1),
                         back,
                         x.data<T>(),
                         cos.data<float>(),
                         sin.data<float>(),
                         y.mutable_data<T>()};
  };
  dispatch(
      "rotary", y, [&] { cpu::rotary(args(float())); },
      [&](auto type) { cuda::rotary(args(type)); });
  return y;
}

}  // namespace

Variable rotary(const Variable& x, const Tensor& cos, const Tensor& sin) {
  require(x.shape().rank() == 4, "rotary: the input {} is not [batch, positions, heads, width]",
          x.shape().to_string());
  require(cos.shape().rank() == 2 && cos.shape() == sin.shape() && cos.size(0) == x.size(1) &&
              2 * cos.size(1) <= x.size(3),
          "rotary: cosines {} and sines {} do not fit an input of {}", cos.shape().to_string(),
          sin.shape().to_string(), x.shape().to_string());
  require_same_device("rotary", x.value(), cos);
  require_same_device("rotary", x.value(), sin);
  return make_result(turned(x.value(), cos, sin, false), {&x}, [x, cos, sin](const Tensor& grad) {
    x.accumulate_grad(turned(grad, cos, sin, true));
  });
}

}  // namespace filigree

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/softmax/softmax_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

Variable apply(const char* op, const Variable& x, bool logarithm) {
  require(x.shape().rank() >= 1 && x.size(-1) > 0, "{}: {} has no last axis to normalise", op,
          x.shape().to_string());
  const std::int64_t width = x.size(-1), rows = x.shape().elements() / width;
  Tensor y = x.value().like(x.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return SoftmaxArgs<T>{rows, width, logarithm, x.value().data<T>(), y.mutable_data<T>()};
  };
  dispatch(
      op, y, [&] { cpu::softmax(args(float())); }, [&](auto type) { cuda::softmax(args(type)); });
  return make_result(y, {&x}, [op, x, y, rows, width, logarithm](const Tensor& grad) {
    Tensor dx = x.value().like(x.shape());
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return SoftmaxGradArgs<T>{rows,        width,          logarithm,
                                y.data<T>(), grad.data<T>(), dx.mutable_data<T>()};
    };
    dispatch(
        op, grad, [&] { cpu::softmax_grad(grad_args(float())); },
        [&](auto type) { cuda::softmax_grad(grad_args(type)); });
    x.accumulate_grad(std::move(dx));
  });
}

}  // namespace

Variable softmax(const Variable& x) { return apply("softmax", x, false); }
Variable log_softmax(const Variable& x) { return apply("log_softmax", x, true); }

}  // namespace filigree

#include "ops/softmax/softmax.h"

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/softmax/softmax_kernels.h"

namespace filigree {
namespace {

Variable apply(const char* op, const Variable& x, bool logarithm) {
  require(x.shape().rank() >= 1 && x.size(-1) > 0, "{}: {} has no last axis to normalise", op,
          x.shape().to_string());
  const std::int64_t width = x.size(-1), rows = x.shape().elements() / width;
  Tensor y = Tensor::empty(x.shape());
  cpu::softmax({rows, width, logarithm, x.value().f32(), y.mutable_f32()});
  return make_result(y, {&x}, [x, y, rows, width, logarithm](const Tensor& grad) {
    Tensor dx = Tensor::empty(x.shape());
    cpu::softmax_grad({rows, width, logarithm, y.f32(), grad.f32(), dx.mutable_f32()});
    x.accumulate_grad(std::move(dx));
  });
}

}  // namespace

Variable softmax(const Variable& x) { return apply("softmax", x, false); }
Variable log_softmax(const Variable& x) { return apply("log_softmax", x, true); }

}  // namespace filigree

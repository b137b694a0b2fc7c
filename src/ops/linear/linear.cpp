#include "ops/linear/linear.h"

#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/linear/linear_kernels.h"
#include "ops/matmul/gemm.h"

namespace filigree {
namespace {

// W as a [in, out] matrix with strides, restricted to the chosen outputs.
struct Strided {
  std::int64_t offset, in_stride, out_stride;
};

Strided strides(const LinearWeight& w) {
  const std::int64_t in = w.inputs();
  if (w.out_in) return {w.begin * in, 1, in};
  return {w.begin, w.weight.size(1), 1};
}

void check(const Variable& x, const LinearWeight& w) {
  const Shape& shape = w.weight.shape();
  require(shape.rank() == 2, "linear: the weight {} is not a matrix", shape.to_string());
  require(x.shape().rank() >= 1 && x.size(-1) == w.inputs(),
          "linear: the input {} does not end in the weight's {} inputs (weight {})",
          x.shape().to_string(), w.inputs(), shape.to_string());
  const std::int64_t all = shape[w.out_in ? 0 : 1];
  require(w.begin >= 0 && w.outputs() >= 0 && w.begin + w.outputs() <= all,
          "linear: outputs [{}, {}) are not within the weight's {}", w.begin, w.begin + w.outputs(),
          all);
  require(!w.bias.defined() || w.bias.shape() == Shape{all},
          "linear: the bias {} does not have the weight's {} outputs",
          w.bias.defined() ? w.bias.shape().to_string() : "", all);
}

// dX = dY W^T, dW += X^T dY, db += column sums of dY; dY is [M, out].
void backward(const Variable& x, const LinearWeight& w, const Tensor& dy) {
  const std::int64_t in = w.inputs(), out = w.outputs(),
                     M = dy.elements() / std::max<std::int64_t>(out, 1);
  const Strided s = strides(w);
  if (w.bias.defined() && w.bias.requires_grad()) {
    Tensor& db = w.bias.grad_to_add_into();
    cpu::add_column_sums({M, out, dy.f32(), db.mutable_f32() + w.begin});
  }
  if (w.weight.requires_grad()) {
    const bool whole = out == w.weight.size(w.out_in ? 0 : 1);
    const bool first = whole && !w.weight.grad().defined();
    Tensor fresh = first ? Tensor::empty(w.weight.shape()) : Tensor();
    float* dw = first ? fresh.mutable_f32() : w.weight.grad_to_add_into().mutable_f32();
    GemmArgs args;
    args.K = M;
    args.accumulate = !first;
    args.C = dw + s.offset;
    if (w.out_in) {
      args.M = out, args.N = in, args.c_row = in;  // dW^T = dY^T X
      args.A = dy.f32(), args.a_row = 1, args.a_col = out;
      args.B = x.value().f32(), args.b_row = in, args.b_col = 1;
    } else {
      args.M = in, args.N = out, args.c_row = s.in_stride;  // dW = X^T dY
      args.A = x.value().f32(), args.a_row = 1, args.a_col = in;
      args.B = dy.f32(), args.b_row = out, args.b_col = 1;
    }
    cpu::gemm(args);
    if (first) w.weight.accumulate_grad(std::move(fresh));
  }
  if (x.requires_grad()) {
    // Several layers often read one input (q, k and v): their gradients are summed in the product.
    const bool first = !x.grad().defined();
    Tensor fresh = first ? Tensor::empty(x.shape()) : Tensor();
    GemmArgs args;
    args.M = M, args.N = in, args.K = out;
    args.accumulate = !first;
    args.A = dy.f32(), args.a_row = out, args.a_col = 1;
    args.B = w.weight.value().f32() + s.offset, args.b_row = s.out_stride, args.b_col = s.in_stride;
    args.C = first ? fresh.mutable_f32() : x.grad_to_add_into().mutable_f32();
    args.c_row = in;
    cpu::gemm(args);
    if (first) x.accumulate_grad(std::move(fresh));
  }
}

Shape result_shape(const Variable& x, const LinearWeight& w) {
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.back() = w.outputs();
  return Shape(extents);
}

// The arguments of y = x W + b.
GemmArgs product(const Variable& x, const LinearWeight& w, Tensor& y) {
  const Strided s = strides(w);
  GemmArgs args;
  args.M = x.shape().elements() / x.size(-1), args.N = w.outputs(), args.K = w.inputs();
  args.A = x.value().f32(), args.a_row = args.K, args.a_col = 1;
  args.B = w.weight.value().f32() + s.offset, args.b_row = s.in_stride, args.b_col = s.out_stride;
  args.C = y.mutable_f32(), args.c_row = args.N;
  args.bias = w.bias.defined() ? w.bias.value().f32() + w.begin : nullptr;
  return args;
}

}  // namespace

Variable linear(const Variable& x, const LinearWeight& w, Activation activation,
                Tensor* pre_activation) {
  check(x, w);
  Tensor y = Tensor::empty(result_shape(x, w));
  const bool gelu = activation == Activation::kGelu;
  const bool recorded = needs_grad({&x, &w.weight, &w.bias});
  Tensor pre =
      gelu && (recorded || pre_activation != nullptr) ? Tensor::empty(y.shape()) : Tensor();

  GemmArgs args = product(x, w, y);
  args.epilogue = gelu ? GemmEpilogue::kGelu : GemmEpilogue::kNone;
  args.pre = pre.defined() ? pre.mutable_f32() : nullptr;
  cpu::gemm(args);
  if (pre_activation != nullptr) *pre_activation = pre;

  return make_result(std::move(y), {&x, &w.weight, &w.bias},
                     [x, w, pre](const Tensor& grad) mutable {
                       if (!pre.defined()) return backward(x, w, grad);
                       Tensor dpre = Tensor::empty(grad.shape());
                       cpu::gelu_grad({grad.elements(), pre.f32(), grad.f32(), dpre.mutable_f32()});
                       pre = Tensor();
                       backward(x, w, dpre);
                     });
}

Variable linear_sum(const Variable& x, const LinearWeight& w, const Variable& h,
                    const LinearWeight& u) {
  check(x, w);
  check(h, u);
  const Shape shape = result_shape(x, w);
  require(shape == result_shape(h, u), "linear_sum: the summands {} and {} differ",
          shape.to_string(), result_shape(h, u).to_string());
  Tensor y = Tensor::empty(shape);
  cpu::gemm(product(x, w, y));
  GemmArgs args = product(h, u, y);
  args.accumulate = true;
  cpu::gemm(args);
  return make_result(std::move(y), {&x, &w.weight, &w.bias, &h, &u.weight, &u.bias},
                     [x, w, h, u](const Tensor& grad) {
                       backward(x, w, grad);
                       backward(h, u, grad);
                     });
}

}  // namespace filigree

#include "ops/linear/linear.h"

#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/linear/linear_kernels.h"
#include "ops/matmul/gemm.h"
#include "tensor/dispatch.h"

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
  require_same_device("linear", x.value(), w.weight.value());
  if (w.bias.defined()) require_same_device("linear", x.value(), w.bias.value());
  require(w.begin >= 0 && w.outputs() >= 0 && w.begin + w.outputs() <= all,
          "linear: outputs [{}, {}) are not within the weight's {}", w.begin, w.begin + w.outputs(),
          all);
  require(!w.bias.defined() || w.bias.shape() == Shape{all},
          "linear: the bias {} does not have the weight's {} outputs",
          w.bias.defined() ? w.bias.shape().to_string() : "", all);
}

// dX = dY W^T, dW += X^T dY, db += column sums of dY; dY is [M, out], of element type T.
template <typename T>
void backward_as(const Variable& x, const LinearWeight& w, const Tensor& dy) {
  const std::int64_t in = w.inputs(), out = w.outputs(),
                     M = dy.elements() / std::max<std::int64_t>(out, 1);
  const Strided s = strides(w);
  if (w.bias.defined() && w.bias.requires_grad()) {
    float* db = w.bias.grad_to_add_into().template mutable_data<float>() + w.begin;
    dispatch(
        "linear", dy,
        [&] {
          cpu::add_column_sums({M, out, dy.f32(), db});
        },
        [&](auto) {
          cuda::add_column_sums(ColumnSumArgs<T>{M, out, dy.data<T>(), db});
        });
  }
  if (w.weight.requires_grad()) {
    const bool whole = out == w.weight.size(w.out_in ? 0 : 1);
    const bool first = whole && !w.weight.grad().defined();
    Tensor fresh = first ? w.weight.value().like(w.weight.shape()) : Tensor();
    float* dw = (first ? fresh : w.weight.grad_to_add_into()).template mutable_data<float>();
    GemmArgs<T, float> args;
    args.K = M;
    args.accumulate = !first;
    args.C = dw + s.offset;
    if (w.out_in) {
      args.M = out, args.N = in, args.c_row = in;  // dW^T = dY^T X
      args.A = dy.data<T>(), args.a_row = 1, args.a_col = out;
      args.B = x.value().data<T>(), args.b_row = in, args.b_col = 1;
    } else {
      args.M = in, args.N = out, args.c_row = s.in_stride;  // dW = X^T dY
      args.A = x.value().data<T>(), args.a_row = 1, args.a_col = in;
      args.B = dy.data<T>(), args.b_row = out, args.b_col = 1;
    }
    gemm_on(dy.device(), args);
    if (first) w.weight.accumulate_grad(std::move(fresh));
  }
  if (x.requires_grad()) {
    // Several layers often read one input (q, k and v): their gradients are summed in the product.
    const bool first = !x.grad().defined();
    Tensor fresh = first ? dy.like(x.shape()) : Tensor();
    GemmArgs<T> args;
    args.M = M, args.N = in, args.K = out;
    args.accumulate = !first;
    args.A = dy.data<T>(), args.a_row = out, args.a_col = 1;
    args.B = w.weight.as(dy.dtype()).data<T>() + s.offset;
    args.b_row = s.out_stride, args.b_col = s.in_stride;
    args.C = (first ? fresh : x.grad_to_add_into()).template mutable_data<T>();
    args.c_row = in;
    gemm_on(dy.device(), args);
    if (first) x.accumulate_grad(std::move(fresh));
  }
}

void backward(const Variable& x, const LinearWeight& w, const Tensor& dy) {
  dispatch(
      "linear", dy, [&] { backward_as<float>(x, w, dy); },
      [&](auto type) { backward_as<decltype(type)>(x, w, dy); });
}

Shape result_shape(const Variable& x, const LinearWeight& w) {
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.back() = w.outputs();
  return Shape(extents);
}

// The arguments of y = x W + b.
template <typename T>
GemmArgs<T> product(const Variable& x, const LinearWeight& w, Tensor& y) {
  const Strided s = strides(w);
  const DType dtype = y.dtype();
  GemmArgs<T> args;
  args.M = x.shape().elements() / x.size(-1), args.N = w.outputs(), args.K = w.inputs();
  args.A = x.value().data<T>(), args.a_row = args.K, args.a_col = 1;
  args.B = w.weight.as(dtype).data<T>() + s.offset;
  args.b_row = s.in_stride, args.b_col = s.out_stride;
  args.C = y.mutable_data<T>(), args.c_row = args.N;
  args.bias = w.bias.defined() ? w.bias.as(dtype).data<T>() + w.begin : nullptr;
  return args;
}

// y = epilogue(x W + b [+ y]).
void multiply(const Variable& x, const LinearWeight& w, Tensor& y, bool accumulate,
              GemmEpilogue epilogue = GemmEpilogue::kNone, Tensor pre = Tensor()) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    GemmArgs<T> args = product<T>(x, w, y);
    args.accumulate = accumulate;
    args.epilogue = epilogue;
    args.pre = pre.defined() ? pre.mutable_data<T>() : nullptr;
    gemm_on(y.device(), args);
  };
  dispatch(
      "linear", y, [&] { run(float()); }, run);
}

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
  check(x, w);
  Tensor y = x.value().like(result_shape(x, w));
  const bool gelu = activation == Activation::kGelu;
  const bool recorded = needs_grad({&x, &w.weight, &w.bias});
  Tensor pre = gelu && (recorded || pre_activation != nullptr) ? y.like(y.shape()) : Tensor();
  multiply(x, w, y, false, gelu ? GemmEpilogue::kGelu : GemmEpilogue::kNone, pre);
  if (pre_activation != nullptr) *pre_activation = pre;

  return make_result(std::move(y), {&x, &w.weight, &w.bias},
                     [x, w, pre](const Tensor& grad) mutable {
                       if (!pre.defined()) return backward(x, w, grad);
                       const Tensor dpre = gelu_gradient(pre, grad);
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
  Tensor y = x.value().like(shape);
  multiply(x, w, y, false);
  multiply(h, u, y, true);
  return make_result(std::move(y), {&x, &w.weight, &w.bias, &h, &u.weight, &u.bias},
                     [x, w, h, u](const Tensor& grad) {
                       backward(x, w, grad);
                       backward(h, u, grad);
                     });
}

}  // namespace filigree

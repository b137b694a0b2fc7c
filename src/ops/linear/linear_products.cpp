#include "ops/linear/linear_products.h"

#include <algorithm>
#include <vector>

#include "filigree/error.h"
#include "ops/linear/linear_kernels.h"
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

template <typename T>
void add_bias_gradient(const LinearWeight& w, const Tensor& dy, std::int64_t M, std::int64_t out) {
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

template <typename T>
void add_weight_gradient(const Tensor& x, const LinearWeight& w, const Tensor& dy, std::int64_t M,
                         std::int64_t out) {
  const std::int64_t in = w.inputs();
  const Strided s = strides(w);
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
    args.B = x.data<T>(), args.b_row = in, args.b_col = 1;
  } else {
    args.M = in, args.N = out, args.c_row = s.in_stride;  // dW = X^T dY
    args.A = x.data<T>(), args.a_row = 1, args.a_col = in;
    args.B = dy.data<T>(), args.b_row = out, args.b_col = 1;
  }
  gemm_on(dy.device(), args);
  if (first) w.weight.accumulate_grad(std::move(fresh));
}

}  // namespace

void check_linear(const Variable& x, const LinearWeight& w) {
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

Shape linear_shape(const Variable& x, const LinearWeight& w) {
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.back() = w.outputs();
  return Shape(extents);
}

void multiply_linear(const Variable& x, const LinearWeight& w, Tensor& y, bool accumulate,
                     Activation f, Tensor pre) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    GemmArgs<T> args = product<T>(x, w, y);
    args.accumulate = accumulate;
    args.epilogue = f == Activation::kNone ? GemmEpilogue::kNone : GemmEpilogue::kActivation;
    args.activation = f;
    args.pre = pre.defined() ? pre.mutable_data<T>() : nullptr;
    gemm_on(y.device(), args);
  };
  dispatch(
      "linear", y, [&] { run(float()); }, run);
}

void add_parameter_gradients(const Tensor& x, const LinearWeight& w, const Tensor& dy) {
  const std::int64_t out = w.outputs(), M = dy.elements() / std::max<std::int64_t>(out, 1);
  const auto run = [&](auto type) {
    using T = decltype(type);
    if (w.bias.defined() && w.bias.requires_grad()) add_bias_gradient<T>(w, dy, M, out);
    if (w.weight.requires_grad()) add_weight_gradient<T>(x, w, dy, M, out);
  };
  dispatch(
      "linear", dy, [&] { run(float()); }, run);
}

void input_gradient(const LinearWeight& w, const Tensor& dy, Tensor& dx, bool accumulate,
                    Activation f, Tensor pre) {
  const Strided s = strides(w);
  const auto run = [&](auto type) {
    using T = decltype(type);
    GemmArgs<T> args;
    args.K = w.outputs(), args.N = w.inputs();
    args.M = dy.elements() / std::max<std::int64_t>(args.K, 1);
    args.accumulate = accumulate;
    args.A = dy.data<T>(), args.a_row = args.K, args.a_col = 1;
    args.B = w.weight.as(dy.dtype()).template data<T>() + s.offset;
    args.b_row = s.out_stride, args.b_col = s.in_stride;
    args.C = dx.mutable_data<T>(), args.c_row = args.N;
    if (pre.defined()) {
      args.epilogue = GemmEpilogue::kActivationGrad;
      args.activation = f;
      args.pre = pre.mutable_data<T>();
    }
    gemm_on(dy.device(), args);
  };
  dispatch(
      "linear", dy, [&] { run(float()); }, run);
}

void add_gradients(const Variable& x, const LinearWeight& w, const Tensor& dy) {
  add_parameter_gradients(x.value(), w, dy);
  if (!x.requires_grad()) return;
  // Several layers often read one input (q, k and v): their gradients are summed in the product.
  const bool first = !x.grad().defined();
  Tensor fresh = first ? dy.like(x.shape()) : Tensor();
  input_gradient(w, dy, first ? fresh : x.grad_to_add_into(), !first);
  if (first) x.accumulate_grad(std::move(fresh));
}

}  // namespace filigree

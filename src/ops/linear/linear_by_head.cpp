#include "ops/linear/linear_by_head.h"

#include <algorithm>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "ops/linear/linear_kernels.h"
#include "ops/matmul/gemm.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr std::int64_t kRowGrain = 16;

// The extents and strides of one head's product: x_h [M, in] within [M, heads, in], and so on.
struct Heads {
  std::int64_t M, heads, in, out;  // `out` of one head
  std::int64_t weight_in, weight_out;

  Heads(const Variable& x, const LinearWeight& w)
      : heads(x.size(-2)), in(w.inputs()), out(w.outputs() / heads) {
    M = x.shape().elements() / std::max<std::int64_t>(heads * in, 1);
    weight_in = w.out_in ? 1 : w.weight.size(1);
    weight_out = w.out_in ? in : 1;
  }
  std::int64_t weight_offset(const LinearWeight& w, std::int64_t h) const {
    return (w.begin + h * out) * weight_out;
  }
};

void check(const Variable& x, const LinearWeight& w) {
  require(w.weight.shape().rank() == 2, "linear_by_head: the weight {} is not a matrix",
          w.weight.shape().to_string());
  require(x.shape().rank() >= 2 && x.size(-1) == w.inputs() && x.size(-2) > 0 &&
              w.outputs() % x.size(-2) == 0,
          "linear_by_head: the input {} is not [..., heads, {}] with heads that divide the {} "
          "outputs",
          x.shape().to_string(), w.inputs(), w.outputs());
  const std::int64_t all = w.weight.size(w.out_in ? 0 : 1);
  require_same_device("linear_by_head", x.value(), w.weight.value());
  if (w.bias.defined()) require_same_device("linear_by_head", x.value(), w.bias.value());
  require(w.begin >= 0 && w.begin + w.outputs() <= all,
          "linear_by_head: outputs [{}, {}) are not within the weight's {}", w.begin,
          w.begin + w.outputs(), all);
  require(!w.bias.defined() || w.bias.shape() == Shape{all},
          "linear_by_head: the bias {} does not have the weight's {} outputs",
          w.bias.defined() ? w.bias.shape().to_string() : "", all);
}

// As in linear.cpp, head by head; dY is [M, heads, out], of element type T.
template <typename T>
void backward_as(const Variable& x, const LinearWeight& w, const Tensor& dy) {
  const Heads n(x, w);
  if (w.bias.defined() && w.bias.requires_grad()) {
    float* db = w.bias.grad_to_add_into().template mutable_data<float>() + w.begin;
    const std::int64_t cols = n.heads * n.out;
    dispatch(
        "linear_by_head", dy,
        [&] {
          cpu::add_column_sums({n.M, cols, dy.f32(), db});
        },
        [&](auto) {
          cuda::add_column_sums(ColumnSumArgs<T>{n.M, cols, dy.data<T>(), db});
        });
  }
  Tensor dx = x.requires_grad() ? dy.like(x.shape()) : Tensor();
  for (std::int64_t h = 0; h < n.heads; ++h) {
    const T* dy_h = dy.data<T>() + h * n.out;
    if (w.weight.requires_grad()) {
      GemmArgs<T, float> args;
      args.K = n.M;
      args.accumulate = true;
      args.C = w.weight.grad_to_add_into().template mutable_data<float>() + n.weight_offset(w, h);
      const T* x_h = x.value().data<T>() + h * n.in;
      if (w.out_in) {
        args.M = n.out, args.N = n.in, args.c_row = n.in;
        args.A = dy_h, args.a_row = 1, args.a_col = n.heads * n.out;
        args.B = x_h, args.b_row = n.heads * n.in, args.b_col = 1;
      } else {
        args.M = n.in, args.N = n.out, args.c_row = n.weight_in;
        args.A = x_h, args.a_row = 1, args.a_col = n.heads * n.in;
        args.B = dy_h, args.b_row = n.heads * n.out, args.b_col = 1;
      }
      gemm_on(dy.device(), args);
    }
    if (dx.defined()) {
      GemmArgs<T> args;
      args.M = n.M, args.N = n.in, args.K = n.out;
      args.A = dy_h, args.a_row = n.heads * n.out, args.a_col = 1;
      args.B = w.weight.as(dy.dtype()).data<T>() + n.weight_offset(w, h);
      args.b_row = n.weight_out, args.b_col = n.weight_in;
      args.C = dx.mutable_data<T>() + h * n.in, args.c_row = n.heads * n.in;
      gemm_on(dy.device(), args);
    }
  }
  if (dx.defined()) x.accumulate_grad(std::move(dx));
}

}  // namespace

Variable linear_by_head(const Variable& x, const LinearWeight& w) {
  check(x, w);
  const Heads n(x, w);
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.back() = n.out;
  Tensor y = x.value().like(Shape(extents));
  const auto run = [&](auto type) {
    using T = decltype(type);
    for (std::int64_t h = 0; h < n.heads; ++h) {
      GemmArgs<T> args;
      args.M = n.M, args.N = n.out, args.K = n.in;
      args.A = x.value().data<T>() + h * n.in, args.a_row = n.heads * n.in, args.a_col = 1;
      args.B = w.weight.as(y.dtype()).template data<T>() + n.weight_offset(w, h);
      args.b_row = n.weight_in, args.b_col = n.weight_out;
      args.C = y.mutable_data<T>() + h * n.out, args.c_row = n.heads * n.out;
      if (w.bias.defined())
        args.bias = w.bias.as(y.dtype()).template data<T>() + w.begin + h * n.out;
      gemm_on(y.device(), args);
    }
  };
  dispatch(
      "linear_by_head", y, [&] { run(float()); }, run);
  return make_result(std::move(y), {&x, &w.weight, &w.bias}, [x, w](const Tensor& grad) {
    dispatch(
        "linear_by_head", grad, [&] { backward_as<float>(x, w, grad); },
        [&](auto type) { backward_as<decltype(type)>(x, w, grad); });
  });
}

Variable repeat_for_heads(const Variable& x, std::int64_t count) {
  require(x.shape().rank() >= 1 && count > 0, "repeat_for_heads: {} times {}", count,
          x.shape().to_string());
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  const std::int64_t d = extents.back(), rows = x.shape().elements() / std::max<std::int64_t>(d, 1);
  if (x.value().on_gpu()) {  // a sum with zeros, which broadcasts
    extents.insert(extents.end() - 1, 1);
    return add(reshape(x, Shape(extents)),
               Tensor::zeros({count, 1}, x.value().dtype(), DeviceKind::kCuda));
  }
  extents.insert(extents.end() - 1, count);
  Tensor y = Tensor::empty(Shape(extents));
  const float* from = x.value().f32();
  float* to = y.mutable_f32();
  parallel_for(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * count; i < end * count; ++i)
      std::copy_n(from + i / count * d, d, to + i * d);
  });
  return make_result(std::move(y), {&x}, [x, rows, count, d](const Tensor& grad) {
    Tensor dx = Tensor::empty(x.shape());
    const float* g = grad.f32();
    float* out = dx.mutable_f32();
    parallel_for(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::copy_n(g + row * count * d, d, out + row * d);
        for (std::int64_t h = 1; h < count; ++h)
          for (std::int64_t j = 0; j < d; ++j) out[row * d + j] += g[(row * count + h) * d + j];
      }
    });
    x.accumulate_grad(std::move(dx));
  });
}

}  // namespace filigree

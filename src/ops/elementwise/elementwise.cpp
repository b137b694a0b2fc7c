#include <algorithm>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/elementwise/elementwise_kernels.h"
#include "ops/reduce/reduce_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr const char* name_of(Binary op) {
  switch (op) {
    case Binary::kAdd: return "add";
    case Binary::kSub: return "sub";
    case Binary::kMul: return "mul";
    case Binary::kDiv: return "div";
  }
  return "binary";
}

// Stride of `axis` of the result within an operand: 0 where the operand repeats.
std::vector<std::int64_t> aligned_strides(const Shape& operand, const Shape& result) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(result.rank()), 0);
  std::int64_t stride = 1;
  for (int i = 1; i <= operand.rank(); ++i) {
    if (operand[-i] != 1) strides[strides.size() - static_cast<std::size_t>(i)] = stride;
    stride *= operand[-i];
  }
  return strides;
}

// Runs a kernel on operands of one element type; `args` holds everything but the memory.
void run_binary(BinaryArgs<> shape, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto args = [&](auto type) {
    using T = decltype(type);
    return BinaryArgs<T>{shape.op,    shape.extents, shape.a_strides,      shape.b_strides,
                         shape.rows,  shape.cols,    shape.a_step,         shape.b_step,
                         a.data<T>(), b.data<T>(),   out.mutable_data<T>()};
  };
  dispatch(
      name_of(shape.op), out, [&] { cpu::binary(args(float())); },
      [&](auto type) { cuda::binary(args(type)); });
}

// Two operands of one shape as long rows, so that threads can share them. The rest that does not
// fill a row comes last.
void run_flat(Binary op, const Tensor& a, const Tensor& b, Tensor& out) {
  BinaryArgs<> args;
  args.op = op;
  args.extents.fill(1);
  const std::int64_t count = out.elements();
  args.cols = out.on_gpu() ? count : std::min<std::int64_t>(count, 4096);
  if (args.cols == 0) return;
  args.rows = args.extents.back() = count / args.cols;
  args.a_strides.back() = args.b_strides.back() = args.cols;
  run_binary(args, a, b, out);
  const std::int64_t done = args.rows * args.cols;
  if (done == count) return;
  const auto rest = [&](const Tensor& x) { return x.reshape({count}).rows(done, count); };
  args.cols = count - done;
  args.rows = args.extents.back() = 1;
  Tensor end = rest(out);
  run_binary(args, rest(a), rest(b), end);
}

// An f32 parameter beside a bf16 activation is rounded to bf16.
Tensor compute(Binary op, Tensor a, Tensor b) {
  const Shape shape = broadcast_shape(name_of(op), a.shape(), b.shape());
  require_same_device(name_of(op), a, b);
  if (a.dtype() != b.dtype()) a = a.to(DType::kBf16), b = b.to(DType::kBf16);
  Tensor out = a.like(shape);
  if (a.shape() == b.shape()) {
    run_flat(op, a, b, out);
    return out;
  }
  BinaryArgs<> args;
  args.op = op;
  args.extents.fill(1);
  const auto as = aligned_strides(a.shape(), shape), bs = aligned_strides(b.shape(), shape);
  args.cols = shape.rank() > 0 ? shape[-1] : 1;
  args.rows = args.cols > 0 ? shape.elements() / args.cols : 0;
  if (shape.rank() > 0) args.a_step = as.back(), args.b_step = bs.back();
  for (int i = 2; i <= shape.rank(); ++i) {
    const auto to = kOuterAxes - static_cast<std::size_t>(i) + 1;
    const auto from = as.size() - static_cast<std::size_t>(i);
    args.extents[to] = std::max<std::int64_t>(shape[-i], 1);
    args.a_strides[to] = as[from], args.b_strides[to] = bs[from];
  }
  run_binary(args, a, b, out);
  return out;
}

// Sums `grad` over the axes along which an operand of shape `to` was repeated.
Tensor sum_to_on_cpu(const Tensor& grad, const Shape& to) {
  const Shape& from = grad.shape();
  const auto strides = aligned_strides(to, from);
  Tensor sums = Tensor::zeros(to);
  float* out = sums.mutable_f32();
  const float* in = grad.f32();
  std::vector<std::int64_t> index(static_cast<std::size_t>(from.rank()), 0);
  std::int64_t at = 0;  // place in `to`
  for (std::int64_t i = 0; i < grad.elements(); ++i) {
    out[at] += in[i];
    for (int axis = from.rank() - 1; axis >= 0; --axis) {
      const auto k = static_cast<std::size_t>(axis);
      at += strides[k];
      if (++index[k] < from[axis]) break;
      at -= strides[k] * from[axis];
      index[k] = 0;
    }
  }
  return sums;
}

// On the GPU neighbouring axes are summed together, one group after the other, in f32.
Tensor sum_to_on_gpu(Tensor grad, const Shape& to) {
  const Shape from = grad.shape();
  if (from.elements() == 0) return Tensor::zeros(to, DType::kF32, grad.device());
  const auto repeated = [&](int axis) {
    const int in_to = axis - (from.rank() - to.rank());
    return from[axis] > 1 && (in_to < 0 || to[in_to] == 1);
  };
  std::int64_t inner = 1;  // of what is left, after `axis`
  for (int axis = from.rank() - 1; axis >= 0;) {
    if (!repeated(axis)) {
      inner *= from[axis--];
      continue;
    }
    std::int64_t extent = 1;
    while (axis >= 0 && (repeated(axis) || from[axis] == 1)) extent *= from[axis--];
    const std::int64_t outer = grad.elements() / (extent * inner);
    Tensor sums = grad.like({outer * inner}, DType::kF32);
    dispatch(
        "sum", grad, [] {},
        [&](auto type) {
          using T = decltype(type);
          cuda::sum(SumArgs<T, float>{outer, extent, inner, 1.0, grad.data<T>(),
                                      sums.mutable_data<float>()});
        });
    grad = sums;
  }
  return grad.reshape(to);
}

Tensor sum_to(const Tensor& grad, const Shape& to) {
  if (grad.shape() == to) return grad;
  return grad.on_gpu() ? sum_to_on_gpu(grad, to) : sum_to_on_cpu(grad, to);
}

Tensor apply(Unary op, const Tensor& x, float factor, float offset) {
  Tensor out = x.like(x.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return UnaryArgs<T>{op, x.elements(), factor, offset, x.data<T>(), out.mutable_data<T>()};
  };
  dispatch(
      "elementwise", out, [&] { cpu::unary(args(float())); },
      [&](auto type) { cuda::unary(args(type)); });
  return out;
}

Tensor scaled(const Tensor& x, float factor) { return apply(Unary::kScaleShift, x, factor, 0.0f); }

Variable binary(Binary op, const Variable& a, const Variable& b) {
  return make_result(compute(op, a.value(), b.value()), {&a, &b}, [op, a, b](const Tensor& grad) {
    if (a.requires_grad()) {
      Tensor da = grad;
      if (op == Binary::kMul) da = compute(Binary::kMul, grad, b.value());
      if (op == Binary::kDiv) da = compute(Binary::kDiv, grad, b.value());
      a.accumulate_grad(sum_to(da, a.shape()));
    }
    if (b.requires_grad()) {
      Tensor db = grad;
      if (op == Binary::kSub) db = scaled(grad, -1.0f);
      if (op == Binary::kMul) db = compute(Binary::kMul, grad, a.value());
      if (op == Binary::kDiv) {  // -grad a / b^2
        const Tensor ratio = compute(Binary::kDiv, a.value(), b.value());
        db = compute(Binary::kDiv, compute(Binary::kMul, scaled(grad, -1.0f), ratio), b.value());
      }
      b.accumulate_grad(sum_to(db, b.shape()));
    }
  });
}

Variable unary(Unary op, const Variable& x, float factor = 1.0f, float offset = 0.0f) {
  Tensor y = apply(op, x.value(), factor, offset);
  return make_result(y, {&x}, [op, x, y, factor](const Tensor& grad) {
    Tensor dx = grad.like(x.shape());
    const auto args = [&](auto type) {
      using T = decltype(type);
      return UnaryGradArgs<T>{op,
                              dx.elements(),
                              factor,
                              x.value().data<T>(),
                              y.data<T>(),
                              grad.data<T>(),
                              dx.mutable_data<T>()};
    };
    dispatch(
        "elementwise", grad, [&] { cpu::unary_grad(args(float())); },
        [&](auto type) { cuda::unary_grad(args(type)); });
    x.accumulate_grad(std::move(dx));
  });
}

}  // namespace

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t ea = i <= a.rank() ? a[-i] : 1;
    const std::int64_t eb = i <= b.rank() ? b[-i] : 1;
    require(ea == eb || ea == 1 || eb == 1, "{}: {} and {} do not broadcast", op, a.to_string(),
            b.to_string());
    extents[static_cast<std::size_t>(rank - i)] = ea == 1 ? eb : ea;
  }
  return Shape(extents);
}

Variable add(const Variable& a, const Variable& b) { return binary(Binary::kAdd, a, b); }
Variable sub(const Variable& a, const Variable& b) { return binary(Binary::kSub, a, b); }
Variable mul(const Variable& a, const Variable& b) { return binary(Binary::kMul, a, b); }
Variable div(const Variable& a, const Variable& b) { return binary(Binary::kDiv, a, b); }

Variable scale(const Variable& x, float factor) { return unary(Unary::kScaleShift, x, factor); }
Variable shift(const Variable& x, float offset) {
  return unary(Unary::kScaleShift, x, 1.0f, offset);
}
Variable clamp(const Variable& x, float bound) { return unary(Unary::kClamp, x, bound); }
Variable soft_cap(const Variable& x, float bound) {
  return scale(tanh(scale(x, 1.0f / bound)), bound);
}
Variable exp(const Variable& x) { return unary(Unary::kExp, x); }
Variable log(const Variable& x) { return unary(Unary::kLog, x); }
Variable sqrt(const Variable& x) { return unary(Unary::kSqrt, x); }
Variable square(const Variable& x) { return unary(Unary::kSquare, x); }
Variable tanh(const Variable& x) { return unary(Unary::kTanh, x); }

}  // namespace filigree

#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/elementwise/elementwise_kernels.h"

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

Tensor compute(Binary op, const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shape(name_of(op), a.shape(), b.shape());
  Tensor out = Tensor::empty(shape);
  BinaryArgs args;
  args.op = op;
  args.extents.fill(1);
  args.a = a.f32(), args.b = b.f32(), args.out = out.mutable_f32();
  if (a.shape() == b.shape()) {
    // One long row, cut so that threads can share it.
    args.cols = std::min<std::int64_t>(shape.elements(), 4096);
    if (args.cols == 0) return out;
    args.rows = args.extents.back() = shape.elements() / args.cols;
    args.a_strides.back() = args.b_strides.back() = args.cols;
    cpu::binary(args);
    const std::int64_t done = args.rows * args.cols;
    args.a += done, args.b += done, args.out += done;
    args.cols = shape.elements() - done;
    args.rows = args.extents.back() = 1;
    if (args.cols > 0) cpu::binary(args);
    return out;
  }
  const auto as = aligned_strides(a.shape(), shape), bs = aligned_strides(b.shape(), shape);
  args.cols = shape.rank() > 0 ? shape[-1] : 1;
  args.rows = args.cols > 0 ? shape.elements() / args.cols : 0;
  if (shape.rank() > 0) args.a_step = as.back(), args.b_step = bs.back();
  for (int i = 2; i <= shape.rank(); ++i) {
    const auto to = BinaryArgs::kAxes - static_cast<std::size_t>(i) + 1;
    const auto from = as.size() - static_cast<std::size_t>(i);
    args.extents[to] = std::max<std::int64_t>(shape[-i], 1);
    args.a_strides[to] = as[from], args.b_strides[to] = bs[from];
  }
  cpu::binary(args);
  return out;
}

// Sums `grad` over the axes along which an operand of shape `to` was repeated.
Tensor sum_to(const Tensor& grad, const Shape& to) {
  if (grad.shape() == to) return grad;
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

Tensor scaled(const Tensor& x, float factor) {
  Tensor out = Tensor::empty(x.shape());
  cpu::unary({Unary::kScaleShift, x.elements(), factor, 0.0f, x.f32(), out.mutable_f32()});
  return out;
}

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
  Tensor y = Tensor::empty(x.shape());
  cpu::unary({op, x.shape().elements(), factor, offset, x.value().f32(), y.mutable_f32()});
  return make_result(y, {&x}, [op, x, y, factor](const Tensor& grad) {
    Tensor dx = Tensor::empty(x.shape());
    cpu::unary_grad(
        {op, x.shape().elements(), factor, x.value().f32(), y.f32(), grad.f32(), dx.mutable_f32()});
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
Variable exp(const Variable& x) { return unary(Unary::kExp, x); }
Variable log(const Variable& x) { return unary(Unary::kLog, x); }
Variable sqrt(const Variable& x) { return unary(Unary::kSqrt, x); }
Variable square(const Variable& x) { return unary(Unary::kSquare, x); }
Variable tanh(const Variable& x) { return unary(Unary::kTanh, x); }
Variable gelu(const Variable& x) { return unary(Unary::kGelu, x); }

}  // namespace filigree

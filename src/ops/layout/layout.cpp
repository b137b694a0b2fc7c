#include "ops/layout/layout.h"

#include <cstring>
#include <utility>

#include "autograd/tape.h"
#include "base/error.h"

namespace filigree {
namespace {

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[static_cast<std::size_t>(shape.checked_axis(axis))] = extent;
  return Shape(extents);
}

// Copies `count` outer blocks of `block` floats between two places with their own steps.
void copy_blocks(std::int64_t count, std::int64_t block, const float* from, std::int64_t from_step,
                 float* to, std::int64_t to_step) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step, from + i * from_step,
                static_cast<std::size_t>(block) * sizeof(float));
}

Tensor transposed(const Tensor& x, int axis_a, int axis_b) {
  const Shape& shape = x.shape();
  int a = shape.checked_axis(axis_a), b = shape.checked_axis(axis_b);
  if (a > b) std::swap(a, b);
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  std::swap(extents[static_cast<std::size_t>(a)], extents[static_cast<std::size_t>(b)]);
  Tensor result = Tensor::empty(Shape(extents));
  if (a == b) {
    std::memcpy(result.mutable_raw(), x.raw(), x.bytes());
    return result;
  }
  // As [outer, A, middle, B, inner] -> [outer, B, middle, A, inner].
  const std::int64_t outer = shape.outer(a), A = shape[a], B = shape[b], inner = shape.inner(b);
  const std::int64_t middle = shape.inner(a) / std::max<std::int64_t>(B * inner, 1);
  const float* from = x.f32();
  float* to = result.mutable_f32();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t j = 0; j < B; ++j)
      for (std::int64_t m = 0; m < middle; ++m)
        for (std::int64_t i = 0; i < A; ++i) {
          std::memcpy(to, from + (((o * A + i) * middle + m) * B + j) * inner,
                      static_cast<std::size_t>(inner) * sizeof(float));
          to += inner;
        }
  return result;
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  return make_result(x.value().reshape(shape), {&x},
                     [x](const Tensor& grad) { x.accumulate_grad(grad.reshape(x.shape())); });
}

Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end) {
  const std::int64_t extent = x.shape()[axis], outer = x.shape().outer(axis),
                     inner = x.shape().inner(axis);
  require(begin >= 0 && begin <= end && end <= extent,
          "slice: [{}, {}) is not within axis {} of {}", begin, end, axis, x.shape().to_string());
  Tensor part = Tensor::empty(with_extent(x.shape(), axis, end - begin));
  const std::int64_t block = (end - begin) * inner, step = extent * inner, offset = begin * inner;
  copy_blocks(outer, block, x.value().f32() + offset, step, part.mutable_f32(), block);
  return make_result(std::move(part), {&x}, [=](const Tensor& grad) {
    Tensor dx = Tensor::zeros(x.shape());
    copy_blocks(outer, block, grad.f32(), block, dx.mutable_f32() + offset, step);
    x.accumulate_grad(std::move(dx));
  });
}

Variable concat(const std::vector<Variable>& parts, int axis) {
  require(!parts.empty(), "concat: nothing to join");
  const Shape& first = parts[0].shape();
  std::int64_t total = 0;
  bool recorded = false;
  for (const Variable& part : parts) {
    require(part.shape().rank() == first.rank() &&
                with_extent(part.shape(), axis, 0) == with_extent(first, axis, 0),
            "concat: {} and {} differ outside axis {}", first.to_string(), part.shape().to_string(),
            axis);
    total += part.shape()[axis];
    recorded = recorded || needs_grad({&part});
  }
  Tensor joined = Tensor::empty(with_extent(first, axis, total));
  const std::int64_t outer = first.outer(axis), inner = first.inner(axis), step = total * inner;
  std::int64_t offset = 0;
  for (const Variable& part : parts) {
    const std::int64_t block = part.shape()[axis] * inner;
    copy_blocks(outer, block, part.value().f32(), block, joined.mutable_f32() + offset, step);
    offset += block;
  }
  if (!recorded) return Variable(std::move(joined));
  Variable result = Variable::result(std::move(joined));
  Tape::current()->add(result, [parts, axis, outer, inner, step](const Tensor& grad) {
    std::int64_t from = 0;
    for (const Variable& part : parts) {
      const std::int64_t block = part.shape()[axis] * inner;
      if (part.requires_grad()) {
        Tensor dx = Tensor::empty(part.shape());
        copy_blocks(outer, block, grad.f32() + from, step, dx.mutable_f32(), block);
        part.accumulate_grad(std::move(dx));
      }
      from += block;
    }
  });
  return result;
}

Variable transpose(const Variable& x, int axis_a, int axis_b) {
  return make_result(transposed(x.value(), axis_a, axis_b), {&x},
                     [x, axis_a, axis_b](const Tensor& grad) {
                       x.accumulate_grad(transposed(grad, axis_a, axis_b));
                     });
}

}  // namespace filigree

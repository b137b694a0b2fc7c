#include <utility>

#include "filigree/autograd.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/layout/copy_blocks.h"
#include "ops/layout/layout_kernels.h"

namespace filigree {
namespace {

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[static_cast<std::size_t>(shape.checked_axis(axis))] = extent;
  return Shape(extents);
}

Tensor transposed(const Tensor& x, int axis_a, int axis_b) {
  const Shape& shape = x.shape();
  int a = shape.checked_axis(axis_a), b = shape.checked_axis(axis_b);
  if (a > b) std::swap(a, b);
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  std::swap(extents[static_cast<std::size_t>(a)], extents[static_cast<std::size_t>(b)]);
  Tensor result = x.like(Shape(extents));
  if (a == b) {
    result.copy_from(x);
    return result;
  }
  // As [outer, A, middle, B, inner] -> [outer, B, middle, A, inner].
  TransposeArgs args;
  args.outer = shape.outer(a), args.A = shape[a], args.B = shape[b];
  args.middle = shape.inner(a) / std::max<std::int64_t>(args.B * shape.inner(b), 1);
  args.inner = shape.inner(b) * static_cast<std::int64_t>(size_of(x.dtype()));
  args.from = x.bytes_on_device(), args.to = result.mutable_bytes_on_device();
  if (!x.on_gpu())
    cpu::transpose(args);
  else if constexpr (kHasCuda)
    cuda::transpose(args);
  return result;
}

}  // namespace

void copy_blocks(std::int64_t count, std::int64_t block, const Tensor& from, BlockPlace from_place,
                 Tensor& to, BlockPlace to_place) {
  require(from.dtype() == to.dtype() && from.device() == to.device(),
          "copy: {} on the {} cannot be copied into {} on the {}", name_of(from.dtype()),
          name_of(from.device()), name_of(to.dtype()), name_of(to.device()));
  const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
  const CopyBlocksArgs args{count,
                            block * size,
                            from.bytes_on_device() + from_place.offset * size,
                            from_place.step * size,
                            to.mutable_bytes_on_device() + to_place.offset * size,
                            to_place.step * size};
  if (!to.on_gpu())
    cpu::copy_blocks(args);
  else if constexpr (kHasCuda)
    cuda::copy_blocks(args);
}

Variable reshape(const Variable& x, const Shape& shape) {
  return make_result(x.value().reshape(shape), {&x},
                     [x](const Tensor& grad) { x.accumulate_grad(grad.reshape(x.shape())); });
}

Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end) {
  const std::int64_t extent = x.shape()[axis], outer = x.shape().outer(axis),
                     inner = x.shape().inner(axis);
  require(begin >= 0 && begin <= end && end <= extent,
          "slice: [{}, {}) is not within axis {} of {}", begin, end, axis, x.shape().to_string());
  Tensor part = x.value().like(with_extent(x.shape(), axis, end - begin));
  const std::int64_t block = (end - begin) * inner, step = extent * inner, offset = begin * inner;
  copy_blocks(outer, block, x.value(), {offset, step}, part, {0, block});
  return make_result(std::move(part), {&x}, [=](const Tensor& grad) {
    Tensor dx = Tensor::zeros(x.shape(), grad.dtype(), grad.device());
    copy_blocks(outer, block, grad, {0, block}, dx, {offset, step});
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
  Tensor joined = parts[0].value().like(with_extent(first, axis, total));
  const std::int64_t outer = first.outer(axis), inner = first.inner(axis), step = total * inner;
  std::int64_t offset = 0;
  for (const Variable& part : parts) {
    const std::int64_t block = part.shape()[axis] * inner;
    copy_blocks(outer, block, part.value(), {0, block}, joined, {offset, step});
    offset += block;
  }
  if (!recorded) return Variable(std::move(joined));
  Variable result = Variable::result(std::move(joined));
  std::vector<const Variable*> inputs;
  for (const Variable& part : parts) inputs.push_back(&part);
  Tape::current()->add(result, inputs, [parts, axis, outer, inner, step](const Tensor& grad) {
    std::int64_t from = 0;
    for (const Variable& part : parts) {
      const std::int64_t block = part.shape()[axis] * inner;
      if (part.requires_grad()) {
        Tensor dx = grad.like(part.shape());
        copy_blocks(outer, block, grad, {from, step}, dx, {0, block});
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

Variable placed(const Variable& x, DeviceKind device, DType dtype) {
  const Tensor& value = x.value();
  if (value.device() == device && value.dtype() == dtype) return x;
  // Converted on the GPU, whichever way it goes: less to copy.
  const auto moved = [](const Tensor& from, DeviceKind to, DType type) {
    return from.on_gpu() ? from.to(type).to(to) : from.to(to).to(type);
  };
  return make_result(moved(value, device, dtype), {&x}, [x, moved](const Tensor& grad) {
    x.accumulate_grad(moved(grad, x.value().device(), x.value().dtype()));
  });
}

}  // namespace filigree

#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/reduce/reduce_kernels.h"
#include "ops/reduce/total.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

struct Axis {
  std::int64_t outer, extent, inner;
};

Axis axis_of(const char* op, const Shape& shape, int axis) {
  const Axis result{shape.outer(axis), shape[axis], shape.inner(axis)};
  require(result.extent > 0, "{}: axis {} of {} is empty", op, axis, shape.to_string());
  return result;
}

Shape reduced_shape(const Shape& shape, int axis, bool keep) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  const auto at = extents.begin() + shape.checked_axis(axis);
  if (keep)
    *at = 1;
  else
    extents.erase(at);
  return Shape(extents);
}

Variable scaled_sum(const char* op, const Variable& x, int axis, bool keep, bool average) {
  const Axis a = axis_of(op, x.shape(), axis);
  const double factor = average ? 1.0 / static_cast<double>(a.extent) : 1.0;
  Tensor sums = x.value().like(reduced_shape(x.shape(), axis, keep));
  const auto args = [&](auto type) {
    using T = decltype(type);
    return SumArgs<T>{
        a.outer, a.extent, a.inner, factor, x.value().data<T>(), sums.mutable_data<T>()};
  };
  dispatch(
      op, sums, [&] { cpu::sum(args(float())); }, [&](auto type) { cuda::sum(args(type)); });
  return make_result(std::move(sums), {&x}, [op, x, a, factor](const Tensor& grad) {
    Tensor dx = x.value().like(x.shape());
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return SpreadArgs<T>{a.outer,        a.extent,
                           a.inner,        static_cast<float>(factor),
                           grad.data<T>(), dx.mutable_data<T>()};
    };
    dispatch(
        op, grad, [&] { cpu::spread(grad_args(float())); },
        [&](auto type) { cuda::spread(grad_args(type)); });
    x.accumulate_grad(std::move(dx));
  });
}

// A view whose gradient has the original shape.
Variable flattened(const Variable& x) {
  return make_result(x.value().reshape({x.shape().elements()}), {&x},
                     [x](const Tensor& grad) { x.accumulate_grad(grad.reshape(x.shape())); });
}

}  // namespace

Variable sum(const Variable& x, int axis, bool keep) {
  return scaled_sum("sum", x, axis, keep, false);
}

Variable mean(const Variable& x, int axis, bool keep) {
  return scaled_sum("mean", x, axis, keep, true);
}

Variable sum_all(const Variable& x) { return sum(flattened(x), 0); }
Variable mean_all(const Variable& x) { return mean(flattened(x), 0); }

Variable maximum(const Variable& x, int axis, bool keep) {
  const Axis a = axis_of("maximum", x.shape(), axis);
  Tensor values = x.value().like(reduced_shape(x.shape(), axis, keep));
  Tensor places = values.like(values.shape(), DType::kI32);
  const auto args = [&](auto type) {
    using T = decltype(type);
    return MaximumArgs<T>{a.outer,
                          a.extent,
                          a.inner,
                          x.value().data<T>(),
                          values.mutable_data<T>(),
                          places.mutable_data<std::int32_t>()};
  };
  dispatch(
      "maximum", values, [&] { cpu::maximum(args(float())); },
      [&](auto type) { cuda::maximum(args(type)); });
  return make_result(std::move(values), {&x}, [x, a, places](const Tensor& grad) {
    Tensor dx = Tensor::zeros(x.shape(), x.value().dtype(), x.value().device());
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return MaximumGradArgs<T>{a.outer,
                                a.extent,
                                a.inner,
                                grad.data<T>(),
                                places.data<std::int32_t>(),
                                dx.mutable_data<T>()};
    };
    dispatch(
        "maximum", grad, [&] { cpu::maximum_grad(grad_args(float())); },
        [&](auto type) { cuda::maximum_grad(grad_args(type)); });
    x.accumulate_grad(std::move(dx));
  });
}

Tensor argmax(const Tensor& x) {
  const Axis a = axis_of("argmax", x.shape(), -1);
  Tensor places = x.like(reduced_shape(x.shape(), -1, false), DType::kI32);
  const auto args = [&](auto type) {
    using T = decltype(type);
    return MaximumArgs<T>{a.outer,     a.extent, a.inner,
                          x.data<T>(), nullptr,  places.mutable_data<std::int32_t>()};
  };
  dispatch(
      "argmax", x, [&] { cpu::maximum(args(float())); },
      [&](auto type) { cuda::maximum(args(type)); });
  return places;
}

Tensor total(const Tensor& values, double factor) {
  Tensor sum = values.like(Shape{});
  const auto args = [&](auto type) {
    using T = decltype(type);
    return SumArgs<T>{1, values.elements(), 1, factor, values.data<T>(), sum.mutable_data<T>()};
  };
  dispatch(
      "total", values, [&] { cpu::sum(args(float())); }, [&](auto type) { cuda::sum(args(type)); });
  return sum;
}

}  // namespace filigree

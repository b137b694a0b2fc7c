// Sums are taken in double precision: they are short on time spent but feed losses and statistics.
#include "ops/reduce/reduce.h"

#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "runtime/threads.h"

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
  Tensor sums = Tensor::empty(reduced_shape(x.shape(), axis, keep));
  const float* in = x.value().f32();
  float* out = sums.mutable_f32();
  parallel_for(a.outer * a.inner, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = in + i / a.inner * a.extent * a.inner + i % a.inner;
      double total = 0.0;
      for (std::int64_t k = 0; k < a.extent; ++k) total += static_cast<double>(from[k * a.inner]);
      out[i] = static_cast<float>(total * factor);
    }
  });
  return make_result(std::move(sums), {&x}, [x, a, factor](const Tensor& grad) {
    Tensor dx = Tensor::empty(x.shape());
    const float* g = grad.f32();
    float* d = dx.mutable_f32();
    const auto f = static_cast<float>(factor);
    parallel_for(a.outer * a.extent, 256, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t c = 0; c < a.inner; ++c)
          d[i * a.inner + c] = g[i / a.extent * a.inner + c] * f;
    });
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
  Tensor values = Tensor::empty(reduced_shape(x.shape(), axis, keep));
  Tensor places = Tensor::empty(values.shape(), DType::kI32);
  const float* in = x.value().f32();
  float* out = values.mutable_f32();
  std::int32_t* place = places.mutable_i32();
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    const float* from = in + i / a.inner * a.extent * a.inner + i % a.inner;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < a.extent; ++k)
      if (from[k * a.inner] > from[best * a.inner]) best = k;
    out[i] = from[best * a.inner];
    place[i] = static_cast<std::int32_t>(best);
  }
  return make_result(std::move(values), {&x}, [x, a, places](const Tensor& grad) {
    Tensor dx = Tensor::zeros(x.shape());
    float* d = dx.mutable_f32();
    for (std::int64_t i = 0; i < grad.elements(); ++i)
      d[i / a.inner * a.extent * a.inner + places.i32()[i] * a.inner + i % a.inner] = grad.f32()[i];
    x.accumulate_grad(std::move(dx));
  });
}

Tensor argmax(const Tensor& x) {
  const Axis a = axis_of("argmax", x.shape(), -1);
  Tensor places = Tensor::empty(reduced_shape(x.shape(), -1, false), DType::kI32);
  std::int32_t* out = places.mutable_i32();
  for (std::int64_t i = 0; i < a.outer; ++i) {
    const float* row = x.f32() + i * a.extent;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < a.extent; ++k)
      if (row[k] > row[best]) best = k;
    out[i] = static_cast<std::int32_t>(best);
  }
  return places;
}

}  // namespace filigree

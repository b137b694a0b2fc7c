#include <algorithm>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/kl_divergence/kl_divergence_kernels.h"
#include "ops/reduce/total.h"
#include "tensor/dispatch.h"

namespace filigree {

Variable kl_divergence(const Tensor& teacher, const Variable& student, const Tensor& targets) {
  require(teacher.defined() && teacher.shape() == student.shape() && teacher.shape().rank() >= 1 &&
              teacher.elements() > 0,
          "kl_divergence: teacher {} and student {} must be logits of one shape",
          teacher.defined() ? teacher.shape().to_string() : "undefined",
          student.shape().to_string());
  const std::int64_t V = teacher.size(-1), rows = teacher.elements() / V;
  std::int64_t counted = rows;
  if (targets.defined()) {
    require(targets.elements() == rows, "kl_divergence: {} targets for logits {}",
            targets.elements(), student.shape().to_string());
    counted -= std::count(targets.i32(), targets.i32() + rows, kIgnoredTarget);
    require(counted > 0, "kl_divergence: all {} positions are ignored", rows);
  }
  require_same_device("kl_divergence", teacher, student.value());
  const Tensor places = targets.defined() ? targets.to(teacher.device()) : Tensor();
  const auto wanted = [](const Tensor& t) {
    return t.defined() ? t.data<std::int32_t>() : nullptr;
  };
  Tensor each = teacher.like({rows}, DType::kF32);
  Tensor lt = each.like({rows}), ls = each.like({rows});
  const auto args = [&](auto type) {
    using T = decltype(type);
    return KlArgs<T>{rows,
                     V,
                     teacher.data<T>(),
                     student.value().data<T>(),
                     wanted(places),
                     kIgnoredTarget,
                     each.mutable_data<float>(),
                     lt.mutable_data<float>(),
                     ls.mutable_data<float>()};
  };
  dispatch(
      "kl_divergence", teacher, [&] { cpu::kl_divergence(args(float())); },
      [&](auto type) { cuda::kl_divergence(args(type)); });
  const Tensor mean = total(each, 1.0 / static_cast<double>(counted));
  return make_result(mean, {&student}, [=](const Tensor& grad) {
    Tensor d = student.last_use() ? student.value() : teacher.like(student.shape());
    const auto grad_args = [&](auto type) {
      using T = decltype(type);
      return KlGradArgs<T>{rows,
                           V,
                           teacher.data<T>(),
                           student.value().data<T>(),
                           wanted(places),
                           kIgnoredTarget,
                           lt.data<float>(),
                           ls.data<float>(),
                           1.0f / static_cast<float>(counted),
                           grad.data<float>(),
                           d.mutable_data<T>()};
    };
    dispatch(
        "kl_divergence", d,
        [&] {
          KlGradArgs<> on_cpu = grad_args(float());
          on_cpu.factor = grad.item() / static_cast<float>(counted);
          on_cpu.upstream = nullptr;
          cpu::kl_divergence_grad(on_cpu);
        },
        [&](auto type) { cuda::kl_divergence_grad(grad_args(type)); });
    student.accumulate_grad(std::move(d));
  });
}

Tensor kl_of_rows(const Tensor& teacher, const Tensor& student) {
  require(teacher.defined() && student.defined() && teacher.shape().rank() == 2 &&
              student.shape().rank() == 2 && teacher.elements() > 0 &&
              teacher.size(1) == student.size(1) && student.size(0) % teacher.size(0) == 0 &&
              teacher.dtype() == student.dtype(),
          "kl_of_rows: teacher {} and student {} must be logits [rows, V] and [n rows, V] of one "
          "element type",
          teacher.defined() ? teacher.shape().to_string() : "undefined",
          student.defined() ? student.shape().to_string() : "undefined");
  require_same_device("kl_of_rows", teacher, student);
  const std::int64_t rows = teacher.size(0), V = teacher.size(1);
  Tensor each = student.like({student.size(0)}, DType::kF32);
  Tensor lt = each.like({rows}), ls = each.like({rows});
  for (std::int64_t first = 0; first < student.size(0); first += rows) {
    const auto args = [&](auto type) {
      using T = decltype(type);
      return KlArgs<T>{rows,
                       V,
                       teacher.data<T>(),
                       student.data<T>() + first * V,
                       nullptr,
                       kIgnoredTarget,
                       each.mutable_data<float>() + first,
                       lt.mutable_data<float>(),
                       ls.mutable_data<float>()};
    };
    dispatch(
        "kl_of_rows", teacher, [&] { cpu::kl_divergence(args(float())); },
        [&](auto type) { cuda::kl_divergence(args(type)); });
  }
  return each;
}

}  // namespace filigree

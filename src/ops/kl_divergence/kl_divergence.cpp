#include "ops/kl_divergence/kl_divergence.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/kl_divergence/kl_divergence_kernels.h"

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
  const auto wanted = [](const Tensor& t) { return t.defined() ? t.i32() : nullptr; };
  Tensor each = Tensor::empty({rows}), lt = Tensor::empty({rows}), ls = Tensor::empty({rows});
  cpu::kl_divergence({rows, V, teacher.f32(), student.value().f32(), wanted(targets),
                      kIgnoredTarget, each.mutable_f32(), lt.mutable_f32(), ls.mutable_f32()});
  double total = 0.0;
  for (float divergence : each.values()) total += static_cast<double>(divergence);
  const auto mean = static_cast<float>(total / static_cast<double>(counted));
  return make_result(Tensor::scalar(mean), {&student}, [=](const Tensor& grad) {
    Tensor d = Tensor::empty(student.shape());
    cpu::kl_divergence_grad({rows, V, teacher.f32(), student.value().f32(), wanted(targets),
                             kIgnoredTarget, lt.f32(), ls.f32(),
                             grad.item() / static_cast<float>(counted), d.mutable_f32()});
    student.accumulate_grad(std::move(d));
  });
}

}  // namespace filigree

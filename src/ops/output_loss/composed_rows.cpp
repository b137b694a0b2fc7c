// Put together from the kernels of the two losses: against the products around them their passes
// over a chunk of logits are cheap.

#include <vector>

#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "ops/cross_entropy/cross_entropy_kernels.h"
#include "ops/kl_divergence/kl_divergence_kernels.h"
#include "ops/output_loss/output_loss_kernels.h"

namespace filigree::cpu {

void loss_rows(const LossRowsArgs<>& args) {
  const auto rows = static_cast<std::size_t>(args.rows);
  std::vector<float> student_lse(rows), teacher_lse(rows);
  cross_entropy(
      {args.rows, args.width, args.logits, args.targets, args.cross_entropy, student_lse.data()});
  if (args.teacher != nullptr) {
    cross_entropy({args.rows, args.width, args.teacher, args.targets, args.teacher_cross_entropy,
                   teacher_lse.data()});
    kl_divergence({args.rows, args.width, args.teacher, args.logits, args.targets, kIgnoredTarget,
                   args.divergence, teacher_lse.data(), student_lse.data()});
  }
  if (!args.gradient) return;
  const bool distil = args.teacher != nullptr && args.distillation > 0.0f;
  if (distil)
    kl_divergence_grad({args.rows, args.width, args.teacher, args.logits, args.targets,
                        kIgnoredTarget, teacher_lse.data(), student_lse.data(),
                        args.factor * args.distillation, nullptr, args.teacher});
  cross_entropy_grad({args.rows, args.width, args.logits, args.targets, student_lse.data(),
                      args.factor * (1.0f - args.distillation), nullptr, args.logits});
  if (!distil) return;
  parallel_for(args.rows * args.width, std::int64_t{1} << 15,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) args.logits[i] += args.teacher[i];
               });
}

}  // namespace filigree::cpu

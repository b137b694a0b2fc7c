#include <fmt/format.h>

#include "ops/cross_entropy/test_support.h"
#include "ops/output_loss/output_loss.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaOutputLoss, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  constexpr std::int64_t kRows = 70, kWidth = 24;
  for (const bool out_in : {true, false})
    for (const std::int64_t V : {3, 64, 257, 5001})
      for (const float kd : {0.0f, 0.4f, 1.0f}) {
        const Tensor targets = targets_with_ignored(kRows, V);
        const Shape shape = out_in ? Shape{V, kWidth} : Shape{kWidth, V};
        const Tensor teacher_x = random_tensor({kRows, kWidth}, 5),
                     teacher_w = random_tensor(shape, 6);
        check_cuda(
            {.name = fmt::format("V {}, distillation {}", V, kd),
             .inputs = {random_tensor({kRows, kWidth}, 1), random_tensor(shape, 2)},
             .op =
                 [&](const std::vector<Variable>& in) {
                   const Tensor& like = in[0].value();
                   Teacher teacher;
                   teacher.x = teacher_x.to(like.device()).to(like.dtype());
                   teacher.output = {Variable(teacher_w.to(like.device())), Variable(), out_in};
                   OutputLossOptions options;
                   options.teacher = kd > 0.0f ? &teacher : nullptr;
                   options.distillation = kd;
                   options.chunk_rows = 32;
                   return output_loss(in[0], {in[1], Variable(), out_in}, targets, options).loss;
                 },
             .parameter = {false, true},
             .bf16_tolerance = 2e-2});
      }
}

}  // namespace
}  // namespace filigree

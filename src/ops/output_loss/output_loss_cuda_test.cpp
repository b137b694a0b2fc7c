#include <fmt/core.h>

#include "ops/cross_entropy/cross_entropy_test_support.h"
#include "ops/output_loss/output_loss.h"
#include "ops/output_loss/output_loss_kernels.h"
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

// The losses of rows and the gradient over their logits, without the products around them. Rows
// begin `step` elements apart.
struct Rows {
  Tensor logits, teacher, targets, cross_entropy, divergence, teacher_cross_entropy;
  std::int64_t width;

  Rows(const Tensor& of_student, const Tensor& of_teacher, const Tensor& ids, std::int64_t V,
       DeviceKind device)
      : logits(of_student.clone().to(device)),
        teacher(of_teacher.clone().to(device)),
        targets(ids.to(device)),
        cross_entropy(Tensor::zeros(ids.shape(), DType::kF32, device)),
        divergence(Tensor::zeros(ids.shape(), DType::kF32, device)),
        teacher_cross_entropy(Tensor::zeros(ids.shape(), DType::kF32, device)),
        width(V) {}

  template <typename T>
  LossRowsArgs<T> args(bool taught, bool gradient) {
    LossRowsArgs<T> args;
    args.rows = logits.shape()[0];
    args.step = logits.shape()[1];
    args.width = width;
    args.logits = logits.mutable_data<T>();
    args.targets = targets.data<std::int32_t>();
    args.gradient = gradient;
    args.factor = 0.5f;
    args.cross_entropy = cross_entropy.mutable_data<float>();
    if (!taught) return args;
    args.teacher = teacher.mutable_data<T>();
    args.distillation = 0.4f;
    args.divergence = divergence.mutable_data<float>();
    args.teacher_cross_entropy = teacher_cross_entropy.mutable_data<float>();
    return args;
  }
};

// The first `width` columns.
Tensor cut(const Tensor& rows, std::int64_t width) {
  Tensor result = Tensor::empty({rows.shape()[0], width});
  for (std::int64_t r = 0; r < rows.shape()[0]; ++r)
    for (std::int64_t c = 0; c < width; ++c)
      result.mutable_f32()[r * width + c] = rows.f32()[r * rows.shape()[1] + c];
  return result;
}

void expect_same(const Tensor& got, const Tensor& expected, double tolerance, const char* what) {
  EXPECT_LT(l2_error(got.values(), expected.values()), tolerance) << what;
}

TEST(CudaOutputLoss, RowsAlone) {
  FILIGREE_NEEDS_GPU();
  constexpr std::int64_t kRows = 9;
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const std::int64_t V : {3, 64, 257, 5001})
      for (const bool taught : {false, true})
        for (const bool gradient : {false, true}) {
          SCOPED_TRACE(fmt::format("{}, V {}, teacher {}, gradient {}", name_of(dtype), V, taught,
                                   gradient));
          const Tensor logits = random_tensor({kRows, V + 3}, 1).to(dtype),
                       teacher = random_tensor({kRows, V + 3}, 2).to(dtype),
                       targets = targets_with_ignored(kRows, V);
          Rows expected(cut(logits.on_host(), V), cut(teacher.on_host(), V), targets, V,
                        DeviceKind::kCpu);
          cpu::loss_rows(expected.args<float>(taught, gradient));
          Rows got(logits, teacher, targets, V, DeviceKind::kCuda);
          if (dtype == DType::kF32)
            cuda::loss_rows(got.args<float>(taught, gradient));
          else
            cuda::loss_rows(got.args<Bf16>(taught, gradient));
          const double tolerance = dtype == DType::kF32 ? 1e-5 : 1e-2;
          expect_same(got.cross_entropy.on_host(), expected.cross_entropy, tolerance,
                      "cross entropy");
          expect_same(got.divergence.on_host(), expected.divergence, tolerance, "divergence");
          expect_same(got.teacher_cross_entropy.on_host(), expected.teacher_cross_entropy,
                      tolerance, "teacher's cross entropy");
          expect_same(cut(got.logits.on_host(), V), expected.logits, tolerance,
                      gradient ? "gradient" : "logits");
        }
}

}  // namespace
}  // namespace filigree

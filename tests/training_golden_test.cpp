// AdamW and the distillation loss against PyTorch.
#include "filigree/ops.h"
#include "support/check_op.h"
#include "support/golden.h"

namespace filigree {
namespace {

TEST(TrainingGolden, AdamWSteps) {
  const SafetensorsFile golden = SafetensorsFile::open(golden_folder() / "adamw.safetensors");
  Tensor w = golden_tensor(golden, "w.0").clone();
  Tensor m = Tensor::zeros(w.shape()), v = Tensor::zeros(w.shape());
  for (std::int64_t t = 1; t <= 6; ++t) {
    // The hyperparameters the fixture was made with.
    adamw_steps({{{3e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1.0f, t},
                  golden_tensor(golden, "g." + std::to_string(t)),
                  w,
                  m,
                  v}});
    EXPECT_LT(
        relative_error(w.values(), to_doubles(golden_tensor(golden, "w." + std::to_string(t)))),
        1e-6)
        << "step " << t;
  }
}

TEST(TrainingGolden, KlDivergenceAndItsGradient) {
  const SafetensorsFile golden = SafetensorsFile::open(golden_folder() / "kl.safetensors");
  const Variable student(golden_tensor(golden, "student"), true);
  Tape tape;
  const Variable loss = kl_divergence(golden_tensor(golden, "teacher"), student);
  EXPECT_NEAR(loss.value().item(), golden_tensor(golden, "loss").f32()[0], 1e-6);
  tape.backward(loss);
  EXPECT_LT(
      relative_error(student.grad().values(), to_doubles(golden_tensor(golden, "grad_student"))),
      1e-5);
}

}  // namespace
}  // namespace filigree

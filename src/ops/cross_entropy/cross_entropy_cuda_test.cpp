#include "filigree/ops.h"
#include "ops/cross_entropy/cross_entropy_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaCrossEntropy, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {1, 7, 64})
    for (const std::int64_t V : {2, 3, 64, 257, 5001}) {
      const Tensor targets = targets_with_ignored(rows, V);
      check_cuda({.name = std::to_string(rows) + " x " + std::to_string(V),
                  .inputs = {random_tensor({rows, V}, 1, -3.0f, 3.0f)},
                  .op = [&](const std::vector<Variable>& in) {
                    Tensor losses;
                    const Variable mean = cross_entropy(in[0], targets, &losses);
                    EXPECT_EQ(losses.shape(), targets.shape());
                    return mean;
                  }});
    }
}

TEST(CudaCrossEntropy, TheGradientMayTakeTheMemoryOfTheLogits) {
  FILIGREE_NEEDS_GPU();
  const Tensor targets = targets_with_ignored(9, 40);
  // The logits are a result that nothing else reads, and then one that another loss reads as well.
  for (const bool shared : {false, true})
    check_cuda({.name = shared ? "two losses" : "one loss",
                .inputs = {random_tensor({9, 6}, 1), random_tensor({6, 40}, 2)},
                .op =
                    [&](const std::vector<Variable>& in) {
                      const Variable logits = linear(in[0], {in[1], Variable()});
                      const Variable loss = cross_entropy(logits, targets);
                      if (!shared) return loss;
                      const DeviceKind device = logits.value().device();
                      const Variable other =
                          linear(logits, {Tensor::full({40, 40}, 0.01f, device), Variable()});
                      return add(loss, cross_entropy(other, targets));
                    },
                .parameter = {false, true},
                .bf16_tolerance = 2e-2});
}

}  // namespace
}  // namespace filigree

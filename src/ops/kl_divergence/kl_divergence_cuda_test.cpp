#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaKlDivergence, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {1, 6, 40})
    for (const std::int64_t V : {2, 33, 64, 4099})
      for (const bool ignoring : {false, true}) {
        Tensor targets = Tensor::zeros({rows}, DType::kI32);
        if (rows > 2) targets.mutable_i32()[2] = kIgnoredTarget;
        check_cuda({.name = std::to_string(rows) + " x " + std::to_string(V),
                    .inputs = {random_tensor({rows, V}, 1, -6.0f, 6.0f),
                               random_tensor({rows, V}, 2, -6.0f, 6.0f)},
                    .op =
                        [&](const std::vector<Variable>& in) {
                          return kl_divergence(in[0].value(), in[1], ignoring ? targets : Tensor());
                        },
                    .constant = {true, false}});
      }
}

TEST(CudaKlDivergence, BothLossesOfOneResult) {
  FILIGREE_NEEDS_GPU();
  const Tensor targets = Tensor::zeros({9}, DType::kI32);
  check_cuda(
      {.name = "cross entropy and divergence",
       .inputs = {random_tensor({9, 6}, 1), random_tensor({6, 40}, 2), random_tensor({9, 40}, 3)},
       .op =
           [&](const std::vector<Variable>& in) {
             const Variable logits = linear(in[0], {in[1], Variable()});
             return add(scale(cross_entropy(logits, targets), 0.25f),
                        scale(kl_divergence(in[2].value(), logits, targets), 0.75f));
           },
       .constant = {false, false, true},
       .parameter = {false, true, false},
       .bf16_tolerance = 2e-2});
}

TEST(CudaKlDivergence, OfRows) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t V : {2, 33, 4099})
    check_cuda(
        {.name = std::to_string(V),
         .inputs = {random_tensor({3, V}, 1, -6.0f, 6.0f), random_tensor({15, V}, 2, -6.0f, 6.0f)},
         .op =
             [&](const std::vector<Variable>& in) {
               return Variable(kl_of_rows(in[0].value(), in[1].value()));
             },
         .constant = {true, true}});
}

}  // namespace
}  // namespace filigree

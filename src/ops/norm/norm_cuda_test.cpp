#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaLayerNorm, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {0, 1, 5, 300})
    for (const std::int64_t width : {3, 8, 33, 100, 192, 768, 1024, 1032, 2056})
      check_cuda({.name = std::to_string(rows) + " x " + std::to_string(width),
                  .inputs = {random_tensor({rows, width}, 1, -2.0f, 3.0f),
                             random_tensor({width}, 2, 0.5f, 1.5f), random_tensor({width}, 3)},
                  .op =
                      [](const std::vector<Variable>& in) {
                        return layer_norm(in[0], in[1], in[2], 1e-5f);
                      },
                  .parameter = {false, true, true},
                  .tolerance = 2e-5});
}

TEST(CudaLayerNorm, AddsToAGradientThatIsThereAlready) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t width : {33, 192, 1032})
    check_cuda({.name = "residual of " + std::to_string(width),
                .inputs = {random_tensor({70, width}, 1, -2.0f, 3.0f),
                           random_tensor({width}, 2, 0.5f, 1.5f), random_tensor({width}, 3)},
                .op =
                    [](const std::vector<Variable>& in) {
                      return add(in[0], layer_norm(in[0], in[1], in[2], 1e-5f));
                    },
                .parameter = {false, true, true},
                .tolerance = 2e-5});
}

TEST(CudaRmsNorm, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {0, 1, 5, 300})
    for (const std::int64_t width : {3, 8, 33, 192, 1024, 1032, 2056})
      for (const bool residual : {false, true})
        check_cuda({.name = std::to_string(rows) + " x " + std::to_string(width) +
                            (residual ? " and the residual" : ""),
                    .inputs = {random_tensor({rows, width}, 1, -2.0f, 3.0f),
                               random_tensor({width}, 2, 0.5f, 1.5f)},
                    .op =
                        [=](const std::vector<Variable>& in) {
                          const Variable y = rms_norm(in[0], in[1], 1e-5f);
                          return residual ? add(in[0], y) : y;
                        },
                    .parameter = {false, true},
                    .tolerance = 2e-5});
}

}  // namespace
}  // namespace filigree

#include "ops/layer_norm/layer_norm.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaLayerNorm, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {0, 1, 5, 300})
    for (const std::int64_t width : {1, 3, 8, 33, 100, 768})
      check_cuda({.name = std::to_string(rows) + " x " + std::to_string(width),
                  .inputs = {random_tensor({rows, width}, 1, -2.0f, 3.0f),
                             random_tensor({width}, 2, 0.5f, 1.5f), random_tensor({width}, 3)},
                  .op =
                      [](const std::vector<Variable>& in) {
                        return layer_norm(in[0], in[1], in[2], 1e-5f);
                      },
                  .parameter = {false, true, true},
                  // Of one column the input's gradient is zero, and all that is compared rounding.
                  .tolerance = width == 1 ? 1e30 : 2e-5,
                  .bf16_tolerance = width == 1 ? 1e30 : 1e-2});
}

}  // namespace
}  // namespace filigree

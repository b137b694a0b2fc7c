#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaRotary, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  struct Extents {
    std::int64_t B, T, H, D, R;
  };
  for (const Extents e : {Extents{1, 1, 1, 2, 1},
                          {0, 3, 2, 8, 4},
                          {2, 3, 2, 8, 4},
                          {2, 5, 3, 20, 10},
                          {1, 7, 2, 20, 3},
                          {2, 4, 2, 6, 0},
                          {2, 33, 4, 64, 32},
                          {2, 33, 4, 64, 16},
                          {1, 40, 2, 128, 64}}) {
    // Cosines and sines of no one angle: the operation does not ask.
    const Tensor cos = random_tensor({e.T, e.R}, 2), sin = random_tensor({e.T, e.R}, 3);
    check_cuda({.name = std::to_string(e.D) + " " + std::to_string(e.R),
                .inputs = {random_tensor({e.B, e.T, e.H, e.D}, 1)},
                .op = [&](const std::vector<Variable>& in) {
                  const DeviceKind device = in[0].value().device();
                  return rotary(in[0], cos.to(device), sin.to(device));
                }});
  }
}

}  // namespace
}  // namespace filigree

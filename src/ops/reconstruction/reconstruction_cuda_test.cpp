#include "ops/reconstruction/reconstruction.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaReconstruction, ErrorGradientsAndSquares) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {1, 64, 200})
    for (const std::int64_t width : {1, 33, 600}) {
      const Tensor targets = random_tensor({3, rows, width}, 3, -1.0f, 2.0f);
      Tensor squares[2], differences[2];
      check_cuda({.name = std::to_string(rows) + " rows of " + std::to_string(width),
                  .inputs = {random_tensor({3, rows, width}, 1), random_tensor({3, 1, width}, 2)},
                  .op =
                      [&](const std::vector<Variable>& in) {
                        const DeviceKind device = in[0].value().device();
                        const Reconstruction result =
                            reconstruction(in[0], in[1], targets.to(device), 0.3f);
                        const std::size_t i = device == DeviceKind::kCuda ? 1 : 0;
                        squares[i] = result.squares.on_host();
                        differences[i] = result.difference.on_host();
                        return result.error;
                      },
                  .with_bf16 = false});
      EXPECT_LT(relative_error(squares[1].values(), to_doubles(squares[0])), 1e-5);
      EXPECT_LT(relative_error(differences[1].values(), to_doubles(differences[0])), 1e-6);
    }
}

}  // namespace
}  // namespace filigree

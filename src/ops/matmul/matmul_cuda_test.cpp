#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaMatmul, EveryTransposeAndBatch) {
  FILIGREE_NEEDS_GPU();
  struct Extents {
    std::int64_t M, N, K;
  };
  for (const Extents e : {Extents{1, 1, 1}, {3, 5, 7}, {8, 16, 32}, {33, 31, 9}, {64, 1, 100}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const std::int64_t batch : {0, 1, 3})
          for (const bool shared : {false, true}) {
            const auto matrix = [&](std::int64_t rows, std::int64_t cols, bool transposed,
                                    bool alone) {
              if (transposed) std::swap(rows, cols);
              return batch == 0 || alone ? Shape{rows, cols} : Shape{batch, rows, cols};
            };
            const Shape a = matrix(e.M, e.K, ta, false), b = matrix(e.K, e.N, tb, shared);
            check_cuda(
                {.name = a.to_string() + (ta ? "^T " : " ") + b.to_string() + (tb ? "^T" : ""),
                 .inputs = {random_tensor(a, 1), random_tensor(b, 2)},
                 .op =
                     [=](const std::vector<Variable>& in) {
                       return matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb});
                     },
                 .bf16_tolerance = 1.5e-2});
          }
}

TEST(CudaMatmul, AParameterBesideAnActivation) {
  FILIGREE_NEEDS_GPU();
  check_cuda({.name = "mixed",
              .inputs = {random_tensor({4, 9, 16}, 1), random_tensor({16, 24}, 2)},
              .op = [](const std::vector<Variable>& in) { return matmul(in[0], in[1]); },
              .parameter = {false, true}});
}

}  // namespace
}  // namespace filigree

#include "filigree/base/random.h"
#include "filigree/ops/embedding/embedding.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaEmbedding, RowsAndTheirSummedGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t count : {0, 1, 9, 700})
    for (const std::int64_t width : {1, 33, 300}) {
      Random random(7);
      std::vector<std::int32_t> ids;
      // Few different ids, so that many rows are added to one, and some that never occur.
      for (std::int64_t i = 0; i < count; ++i)
        ids.push_back(static_cast<std::int32_t>(random.below(3) == 0 ? random.below(50) : 4));
      const Tensor places = Tensor::from_ids({count}, ids);
      for (const DType dtype : {DType::kF32, DType::kBf16})
        check_cuda({.name = std::to_string(count) + " rows of " + std::to_string(width),
                    .inputs = {random_tensor({50, width}, 1)},
                    .op =
                        [&](const std::vector<Variable>& in) {
                          const bool there = in[0].value().on_gpu();
                          return embedding(in[0], places, there ? dtype : DType::kF32);
                        },
                    .parameter = {true},
                    .tolerance = dtype == DType::kF32 ? 1e-5 : 1e-2,
                    .with_bf16 = false});
    }
}

}  // namespace
}  // namespace filigree

#include "filigree/ops.h"
#include "filigree/random.h"
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

TEST(CudaEmbedding, RowsOfATableInBf16Alone) {
  FILIGREE_NEEDS_GPU();
  const Tensor table = random_tensor({9, 33}, 1).to(DType::kBf16).to(DType::kF32);
  const Tensor ids = Tensor::from_ids({2, 2}, std::vector<std::int32_t>{3, 8, 0, 3});
  const Tensor wanted = embedding(table, ids, DType::kF32).value();
  const Tensor there = table.to(DeviceKind::kCuda).to(DType::kBf16);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Tensor found = embedding(there, ids, dtype).value();
    EXPECT_EQ(found.dtype(), dtype);
    EXPECT_TRUE(check_op_detail::same_bits(found.on_host(), wanted));
  }
}

TEST(CudaEmbedding, RowsOfManyTablesTimesTheirFactors) {
  FILIGREE_NEEDS_GPU();
  std::vector<Tensor> here, there;
  std::vector<float> factors;
  for (int t = 0; t < 70; ++t) {  // more than one launch takes
    here.push_back(random_tensor({9, 33}, static_cast<std::uint64_t>(t)));
    there.push_back(here.back().to(DeviceKind::kCuda));
    factors.push_back(0.1f * static_cast<float>(t));
  }
  const Tensor ids = Tensor::from_ids({5}, std::vector<std::int32_t>{3, 8, -1, 0, 3});
  const Tensor wanted = scaled_rows(here, ids, factors);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Tensor found = scaled_rows(there, ids.to(DeviceKind::kCuda), factors, dtype);
    EXPECT_TRUE(check_op_detail::same_bits(found.on_host(), wanted.to(dtype).to(DType::kF32)));
  }
}

}  // namespace
}  // namespace filigree

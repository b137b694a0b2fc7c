#include <limits>

#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaSoftmax, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {0, 1, 50})
    for (const std::int64_t width : {2, 7, 32, 1000, 5003})
      for (const bool logarithm : {false, true})
        check_cuda({.name = std::to_string(rows) + " x " + std::to_string(width) +
                            (logarithm ? " log" : ""),
                    .inputs = {random_tensor({rows, width}, 1, -5.0f, 5.0f)},
                    .op = [=](const std::vector<Variable>& in) {
                      return logarithm ? log_softmax(in[0]) : softmax(in[0]);
                    }});
}

TEST(CudaSoftmax, MaskedEntriesAreExactlyZeroAndMaskedRowsStayDefined) {
  FILIGREE_NEEDS_GPU();
  Tensor x = random_tensor({3, 70}, 4);
  for (std::int64_t i = 0; i < 70; ++i) x.mutable_f32()[i] = -INFINITY;
  x.mutable_f32()[75] = -INFINITY;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Tensor y = softmax(x.to(DeviceKind::kCuda).to(dtype)).value().on_host();
    EXPECT_EQ(y.f32()[0], 0.0f);
    EXPECT_EQ(y.f32()[69], 0.0f);
    EXPECT_EQ(y.f32()[75], 0.0f);
    EXPECT_GT(y.f32()[76], 0.0f);
  }
}

TEST(CudaSoftmax, ANanIsNotLost) {
  FILIGREE_NEEDS_GPU();
  Tensor x = random_tensor({1, 70}, 4);
  x.mutable_f32()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(softmax(x.to(DeviceKind::kCuda)).value().on_host().f32()[50]));
}

}  // namespace
}  // namespace filigree

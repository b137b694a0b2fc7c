#include <cstring>
#include <numeric>
#include <vector>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "filigree/tensor.h"
#include "support/check_cuda.h"
#include "support/errors.h"

namespace filigree {
namespace {

TEST(CudaMemory, CopiesThereAndBackOfEverySize) {
  FILIGREE_NEEDS_GPU();
  // Below, at and beyond the pinned slots of 4 MiB.
  for (const std::int64_t count : {1, 7, 1 << 20, (1 << 20) + 3, 5 * (1 << 20) + 1}) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 5);
    const Tensor there = Tensor::from_ids({count}, numbers).to(DeviceKind::kCuda);
    const Tensor back = there.clone().to(DeviceKind::kCpu);
    EXPECT_EQ(std::memcmp(back.raw(), numbers.data(), back.bytes()), 0) << count;
  }
}

TEST(CudaMemory, TheSourceOfAnUploadMayChangeAtOnce) {
  FILIGREE_NEEDS_GPU();
  std::vector<Tensor> there;
  Tensor source = Tensor::empty({1000});
  for (int i = 0; i < 50; ++i) {
    std::fill_n(source.mutable_f32(), 1000, static_cast<float>(i));
    there.push_back(source.to(DeviceKind::kCuda));
  }
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(there[static_cast<std::size_t>(i)].to(DeviceKind::kCpu).f32()[999],
              static_cast<float>(i));
}

TEST(CudaMemory, ThePoolUsesBlocksAgain) {
  FILIGREE_NEEDS_GPU();
  Tensor::empty({1 << 20}, DType::kF32, DeviceKind::kCuda);
  const std::uint64_t before = pool_statistics(DeviceKind::kCuda).system_allocations;
  for (int i = 0; i < 5; ++i) Tensor::empty({1 << 20}, DType::kF32, DeviceKind::kCuda);
  EXPECT_EQ(pool_statistics(DeviceKind::kCuda).system_allocations, before);
}

TEST(CudaMemory, RunningOutSaysHowMuchWasNeededAndWhatToDo) {
  FILIGREE_NEEDS_GPU();
  const std::string text =
      error_of([] { Tensor::empty({std::int64_t{1} << 40}, DType::kF32, DeviceKind::kCuda); });
  EXPECT_NE(text.find("out of memory"), std::string::npos) << text;
  EXPECT_NE(text.find("smaller --batch"), std::string::npos) << text;
  // The next one works.
  EXPECT_EQ(Tensor::full({3}, 2.0f, DeviceKind::kCuda).to(DeviceKind::kCpu).f32()[2], 2.0f);
}

TEST(CudaTensor, RefusesToBeReadOnTheCpu) {
  FILIGREE_NEEDS_GPU();
  Tensor there = Tensor::full({2, 3}, 1.5f, DeviceKind::kCuda);
  EXPECT_THROW(there.f32(), Error);
  EXPECT_THROW(there.values(), Error);
  EXPECT_THROW(there.raw(), Error);
  EXPECT_THROW(there.mutable_f32(), Error);
  EXPECT_THROW(there.item(), Error);  // more than one number
  EXPECT_EQ(Tensor::full({1}, 4.0f, DeviceKind::kCuda).item(), 4.0f);
  EXPECT_EQ(there.to(DeviceKind::kCpu).f32()[5], 1.5f);
  EXPECT_EQ(Tensor::zeros({5}, DType::kF32, DeviceKind::kCuda).to(DeviceKind::kCpu).f32()[4], 0.0f);
}

TEST(CudaTensor, RoundsToBf16AsTheCpuDoes) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t count : {1, 8, 1003}) {
    const Tensor values = random_tensor({count}, 3, -100.0f, 100.0f);
    const Tensor here = values.to(DType::kBf16);
    const Tensor there = values.to(DeviceKind::kCuda).to(DType::kBf16);
    EXPECT_TRUE(check_op_detail::same_bits(here, there.to(DeviceKind::kCpu))) << count;
    EXPECT_TRUE(check_op_detail::same_bits(here.to(DType::kF32), there.on_host())) << count;
  }
}

TEST(CudaVariable, AddsGradientsAndKeepsAWorkingCopy) {
  FILIGREE_NEEDS_GPU();
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Variable x(Tensor::full({9}, 1.0f, DeviceKind::kCuda).to(dtype), true);
    x.accumulate_grad(Tensor::full({9}, 2.0f, DeviceKind::kCuda));
    x.accumulate_grad(Tensor::full({9}, 3.0f, DeviceKind::kCuda).to(DType::kBf16));
    EXPECT_EQ(x.grad().dtype(), dtype);
    EXPECT_EQ(x.grad().on_host().f32()[8], 5.0f);
  }
  const Variable weight(Tensor::full({2}, 1.5f, DeviceKind::kCuda), true);
  EXPECT_EQ(weight.as(DType::kBf16).dtype(), DType::kBf16);
  EXPECT_TRUE(weight.working_copy().defined());
  weight.mutable_value() = Tensor::full({2}, 2.5f, DeviceKind::kCuda);
  EXPECT_FALSE(weight.working_copy().defined());
  EXPECT_EQ(weight.as(DType::kBf16).on_host().f32()[0], 2.5f);
}

}  // namespace
}  // namespace filigree

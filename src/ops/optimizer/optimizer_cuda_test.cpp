#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaOptimizer, StepsAsTheCpuAndRefreshesTheBf16Copy) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t count : {1, 31, 100003}) {
    Tensor w = random_tensor({count}, 1), m = Tensor::zeros({count}), v = Tensor::zeros({count});
    Tensor gw = w.to(DeviceKind::kCuda), gm = m.to(DeviceKind::kCuda), gv = v.to(DeviceKind::kCuda);
    Tensor copy = gw.to(DType::kBf16);
    for (std::int64_t step = 1; step <= 3; ++step) {
      const Tensor g = random_tensor({count}, static_cast<std::uint64_t>(10 + step));
      const AdamWStep options{0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, step};
      adamw_steps({{options, g, w, m, v}});
      adamw_steps({{options, g.to(DeviceKind::kCuda), gw, gm, gv, copy}});
    }
    EXPECT_LT(relative_error(gw.on_host().values(), to_doubles(w)), 1e-6) << count;
    EXPECT_LT(relative_error(gm.on_host().values(), to_doubles(m)), 1e-6) << count;
    EXPECT_LT(relative_error(gv.on_host().values(), to_doubles(v)), 1e-6) << count;
    EXPECT_TRUE(check_op_detail::same_bits(copy.to(DeviceKind::kCpu),
                                           gw.to(DeviceKind::kCpu).to(DType::kBf16)));
  }
}

TEST(CudaOptimizer, ManyTensorsAtOnce) {
  FILIGREE_NEEDS_GPU();
  std::vector<AdamWUpdate> here, there;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t count = i % 7 == 3 ? 0 : i * 97 % 5000 + 1;
    const auto seed = static_cast<std::uint64_t>(i);
    AdamWUpdate update;
    update.step.learning_rate = 0.01f * static_cast<float>(i % 3 + 1);
    update.gradient = random_tensor({count}, seed);
    update.weight = random_tensor({count}, seed + 1000);
    update.first_moment = Tensor::zeros({count}), update.second_moment = Tensor::zeros({count});
    AdamWUpdate copy = update;
    for (Tensor* x : {&copy.gradient, &copy.weight, &copy.first_moment, &copy.second_moment})
      *x = x->to(DeviceKind::kCuda);
    here.push_back(update), there.push_back(copy);
  }
  adamw_steps(here);
  adamw_steps(there);
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_LT(relative_error(there[i].weight.on_host().values(), to_doubles(here[i].weight)), 1e-6)
        << i;
}

TEST(CudaOptimizer, TheNormOfManyTensors) {
  FILIGREE_NEEDS_GPU();
  std::vector<Tensor> here, there;
  for (const std::int64_t count : {1, 0, 300, 40000, 1000001}) {
    here.push_back(random_tensor({count}, static_cast<std::uint64_t>(count)));
    there.push_back(here.back().to(DeviceKind::kCuda));
  }
  const double norm = global_norm(there);
  EXPECT_NEAR(norm / global_norm(here), 1.0, 1e-12);
  EXPECT_EQ(norm, global_norm(there));
}

}  // namespace
}  // namespace filigree

#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(AdamWStep, AgreesWithDoublePrecisionOverManySteps) {
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available())
    for (const std::int64_t count : {1, 37, 40000}) {
      set_simd_level(level);
      Tensor w = random_tensor({count}, 1), m = Tensor::zeros({count}), v = Tensor::zeros({count});
      Doubles we = to_doubles(w), me(w.values().size()), ve(w.values().size());
      const double lr = 0.01, b1 = 0.9, b2 = 0.95, decay = 0.1, scale = 0.5;
      for (std::int64_t t = 1; t <= 10; ++t) {
        const Tensor g = random_tensor({count}, 10 + static_cast<std::uint64_t>(t));
        adamw_steps({{{0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, t}, g, w, m, v}});
        for (std::size_t i = 0; i < we.size(); ++i) {
          const double gradient = static_cast<double>(g.f32()[i]) * scale;
          me[i] = b1 * me[i] + (1 - b1) * gradient;
          ve[i] = b2 * ve[i] + (1 - b2) * gradient * gradient;
          we[i] = we[i] * (1 - lr * decay) - lr * (me[i] / (1 - std::pow(b1, t))) /
                                                 (std::sqrt(ve[i] / (1 - std::pow(b2, t))) + 1e-8);
        }
      }
      EXPECT_LT(relative_error(w.values(), we), 2e-6) << name_of(level) << " " << count;
    }
}

TEST(AdamWStep, RefusesShapesThatDoNotFit) {
  Tensor w = Tensor::zeros({3}), m = Tensor::zeros({3}), v = Tensor::zeros({2});
  EXPECT_THROW(adamw_steps({{{}, w.clone(), w, m, v}}), Error);
}

TEST(GlobalNorm, SumsAllTensorsAndDoesNotDependOnThreads) {
  std::vector<Tensor> tensors = {random_tensor({100000}, 1), random_tensor({3, 7}, 2),
                                 Tensor::zeros({0})};
  double exact = 0.0;
  for (const Tensor& tensor : tensors)
    for (float x : tensor.values()) exact += static_cast<double>(x) * static_cast<double>(x);
  const int before = num_threads();
  set_num_threads(1);
  const double one = global_norm(tensors);
  set_num_threads(3);
  const double three = global_norm(tensors);
  set_num_threads(before);
  EXPECT_EQ(one, three);
  EXPECT_NEAR(one, std::sqrt(exact), 1e-9 * one);
}

}  // namespace
}  // namespace filigree

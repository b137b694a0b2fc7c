#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(CrossEntropy, ValuesAndGradientsWithIgnoredTargets) {
  for (const std::int64_t width : {2, 17, 64, 301}) {
    const std::vector<std::int32_t> targets = {0, 1, kIgnoredTarget,
                                               static_cast<std::int32_t>(width - 1), 1};
    check_op({.name = fmt::format("cross_entropy over {}", width),
              .inputs = {random_tensor({5, width}, 1, -6, 6)},
              .op =
                  [=](const std::vector<Variable>& x) {
                    return cross_entropy(x[0], Tensor::from_ids({5}, targets));
                  },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    double loss = 0.0;
                    for (std::size_t r = 0; r < 5; ++r) {
                      if (targets[r] < 0) continue;
                      const double* row = x[0].data() + r * static_cast<std::size_t>(width);
                      double total = 0.0;
                      for (std::int64_t c = 0; c < width; ++c) total += std::exp(row[c]);
                      loss += (std::log(total) - row[targets[r]]) / 4;
                    }
                    return Doubles{loss};
                  }});
  }
}

TEST(CrossEntropy, PerTokenLossesAverageToTheLoss) {
  const std::vector<std::int32_t> targets = {3, kIgnoredTarget, 0};
  Tensor each;
  const float loss =
      cross_entropy(random_tensor({3, 8}, 1, -3, 3), Tensor::from_ids({3}, targets), &each)
          .value()
          .item();
  EXPECT_EQ(each.f32()[1], 0.0f);
  EXPECT_NEAR(loss, (each.f32()[0] + each.f32()[2]) / 2, 1e-6);
}

TEST(CrossEntropy, ConfidentPredictionsKeepTheirSmallLosses) {
  // log(1 + e^-15): subtracting a log-sum-exp of size 20 from the logit would round it away.
  std::vector<float> logits = {20.0f, 5.0f};
  const std::vector<std::int32_t> target = {0};
  const float loss =
      cross_entropy(Tensor::from({1, 2}, logits), Tensor::from_ids({1}, target)).value().item();
  EXPECT_NEAR(loss / std::log1p(std::exp(-15.0)), 1.0, 0.3);
}

TEST(CrossEntropy, RefusesTargetsOutsideTheVocabularyAndEmptyWork) {
  const Tensor logits = Tensor::zeros({1, 4});
  const std::vector<std::int32_t> high = {4}, low = {-1}, none = {kIgnoredTarget};
  EXPECT_THROW(cross_entropy(logits, Tensor::from_ids({1}, high)), Error);
  EXPECT_THROW(cross_entropy(logits, Tensor::from_ids({1}, low)), Error);
  EXPECT_THROW(cross_entropy(logits, Tensor::from_ids({1}, none)), Error);
}

}  // namespace
}  // namespace filigree

#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

Doubles reference(const Doubles& x, std::size_t width, bool logarithm) {
  Doubles y(x.size());
  for (std::size_t r = 0; r < x.size() / width; ++r) {
    double total = 0.0;
    for (std::size_t c = 0; c < width; ++c) total += std::exp(x[r * width + c]);
    for (std::size_t c = 0; c < width; ++c) {
      const double log_value = x[r * width + c] - std::log(total);
      y[r * width + c] = logarithm ? log_value : std::exp(log_value);
    }
  }
  return y;
}

TEST(Softmax, ValuesAndGradients) {
  for (const std::int64_t width : {2, 16, 33, 100})
    for (const bool logarithm : {false, true})
      check_op({.name = fmt::format("{} of width {}", logarithm ? "log_softmax" : "softmax", width),
                .inputs = {random_tensor({9, width}, 1, -4, 4)},
                .op =
                    [=](const std::vector<Variable>& x) {
                      return logarithm ? log_softmax(x[0]) : softmax(x[0]);
                    },
                .reference =
                    [=](const std::vector<Doubles>& x) {
                      return reference(x[0], static_cast<std::size_t>(width), logarithm);
                    },
                .gradient_tolerance = 5e-5});
}

TEST(Softmax, MaskedEntriesAreExactlyZeroAndMaskedRowsStayDefined) {
  const std::vector<float> values = {1, -INFINITY, 1, -INFINITY, -INFINITY, -INFINITY};
  const Tensor y = softmax(Tensor::from({2, 3}, values)).value();
  const std::vector<float> expected = {0.5f, 0, 0.5f, 0, 0, 0};
  EXPECT_TRUE(std::equal(y.values().begin(), y.values().end(), expected.begin()));
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  const std::vector<float> values = {1000, 1001, -1000};
  const Tensor y = softmax(Tensor::from({1, 3}, values)).value();
  EXPECT_NEAR(y.f32()[0], 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(y.f32()[2], 0.0f);
}

TEST(Softmax, RefusesAnEmptyAxis) { EXPECT_THROW(softmax(Tensor::zeros({2, 0})), Error); }

}  // namespace
}  // namespace filigree

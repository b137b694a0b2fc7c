#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/activation/activation_test_support.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(Activation, ValuesAndGradients) {
  for (const Activation f : kActivations)
    for (const std::int64_t count : {1, 16, 37, f == Activation::kSilu ? 33000 : 300})
      check_op({.name = fmt::format("{} of {}", text_of(f), count),
                .inputs = {random_tensor({count}, 1, -4, 4)},
                .op = [&](const std::vector<Variable>& x) { return activate(x[0], f); },
                .reference =
                    [&](const std::vector<Doubles>& x) {
                      Doubles y;
                      for (const double v : x[0]) y.push_back(exactly(f, v));
                      return y;
                    }});
}

TEST(Activation, GatedProductsAndTheirGradients) {
  for (const Activation f : kActivations)
    for (const std::int64_t rows : {1, 3, f == Activation::kSilu ? 620 : 7})
      check_op(
          {.name = fmt::format("{} gate of {} rows", text_of(f), rows),
           .inputs = {random_tensor({rows, 53}, 1, -4, 4), random_tensor({rows, 53}, 2, -2, 2)},
           .op = [&](const std::vector<Variable>& x) { return gated_product(x[0], x[1], f); },
           .reference =
               [&](const std::vector<Doubles>& x) {
                 Doubles y;
                 for (std::size_t i = 0; i < x[0].size(); ++i)
                   y.push_back(exactly(f, x[0][i]) * x[1][i]);
                 return y;
               }});
}

TEST(Activation, AGateWithoutAGradientLeavesTheOthers) {
  for (const bool gate_constant : {false, true})
    check_op({.name = "constant",
              .inputs = {random_tensor({9}, 1), random_tensor({9}, 2)},
              .op =
                  [](const std::vector<Variable>& x) {
                    return gated_product(x[0], x[1], Activation::kSilu);
                  },
              .reference =
                  [](const std::vector<Doubles>& x) {
                    Doubles y;
                    for (std::size_t i = 0; i < x[0].size(); ++i)
                      y.push_back(exactly(Activation::kSilu, x[0][i]) * x[1][i]);
                    return y;
                  },
              .constant = {gate_constant, !gate_constant}});
}

// Near zero relative to the value itself, and in the tails, where a difference would cancel.
TEST(Activation, KeepsItsPrecisionFromTheFarTailsToZero) {
  std::vector<float> xs;
  for (float x = -12.0f; x <= 12.0f; x += 0.01f) xs.push_back(x);
  for (float x = 1e-8f; x < 0.3f; x *= 1.3f) xs.insert(xs.end(), {x, -x});
  const auto count = static_cast<std::int64_t>(xs.size());
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    for (const Activation f : kActivations) {
      SCOPED_TRACE(text_of(f));
      const Tensor y = activate(Tensor::from({count}, xs), f).value();
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const double exact = exactly(f, static_cast<double>(xs[i]));
        const auto found = static_cast<double>(y.f32()[i]);
        ASSERT_NEAR(found, exact, 4e-7 * std::max(1.0, std::abs(exact))) << xs[i];
        // The exponent itself is rounded: its error grows with the square of x.
        const double steps = 1.0 + static_cast<double>(xs[i]) * static_cast<double>(xs[i]);
        if (f != Activation::kGeluNew && exact != 0.0) {
          ASSERT_NEAR(found / exact, 1.0, 6e-7 * steps) << xs[i];
        } else if (xs[i] > 0) {
          ASSERT_NEAR(found / exact, 1.0, 1e-6) << xs[i];
        }
      }
    }
  }
}

TEST(Activation, FarValuesHaveFiniteResultsAndSlopes) {
  const std::vector<float> xs = {-1e4f, -200.0f, -90.0f, -20.0f, 20.0f, 90.0f, 200.0f, 1e4f};
  for (const Activation f : kActivations) {
    const Variable x(Tensor::from({8}, xs), true);
    Tape tape;
    const Variable y = activate(x, f);
    for (std::size_t i = 0; i < xs.size(); ++i)
      EXPECT_NEAR(y.value().f32()[i], xs[i] > 0 ? xs[i] : 0.0f, 1e-6f) << text_of(f) << xs[i];
    tape.backward(y, Tensor::full({8}, 1.0f));
    for (std::size_t i = 0; i < xs.size(); ++i)
      EXPECT_NEAR(x.grad().f32()[i], xs[i] > 0 ? 1.0f : 0.0f, 1e-6f) << text_of(f) << xs[i];
  }
}

TEST(Activation, KeepsWhatIsNotANumber) {
  for (const Activation f : kActivations)
    EXPECT_TRUE(std::isnan(activate(Tensor::full({5}, NAN), f).value().f32()[3])) << text_of(f);
}

TEST(Activation, RefusesAGateOfAnotherShape) {
  EXPECT_THROW(gated_product(Tensor::zeros({2, 3}), Tensor::zeros({3}), Activation::kSilu), Error);
}

}  // namespace
}  // namespace filigree

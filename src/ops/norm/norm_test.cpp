#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

// Of layer norm; without a bias, of RMS norm.
Doubles reference(const std::vector<Doubles>& in, std::size_t width, double epsilon) {
  const bool centred = in.size() > 2;
  Doubles y(in[0].size());
  for (std::size_t r = 0; r < y.size() / width; ++r) {
    const double* x = in[0].data() + r * width;
    double mean = 0.0, variance = 0.0;
    for (std::size_t i = 0; centred && i < width; ++i) mean += x[i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      y[r * width + i] =
          (x[i] - mean) / std::sqrt(variance + epsilon) * in[1][i] + (centred ? in[2][i] : 0.0);
  }
  return y;
}

TEST(LayerNorm, ValuesAndGradients) {
  for (const std::int64_t width : {1, 3, 16, 48, 100})
    for (const std::int64_t rows : {1, 37})
      check_op(
          {.name = fmt::format("layer_norm {}x{}", rows, width),
           .inputs = {random_tensor({rows, width}, 1, -3, 5), random_tensor({width}, 2, 0.5, 2),
                      random_tensor({width}, 3)},
           .op = [](const std::vector<Variable>& x) { return layer_norm(x[0], x[1], x[2], 1e-5f); },
           .reference =
               [=](const std::vector<Doubles>& x) {
                 return reference(x, static_cast<std::size_t>(width), 1e-5);
               },
           .tolerance = 1e-5,
           .gradient_tolerance = 1e-4,
           // A row of one element has no gradient to compare, only rounding.
           .constant = {width == 1}});
}

TEST(RmsNorm, ValuesAndGradients) {
  for (const std::int64_t width : {1, 3, 16, 48, 100})
    for (const std::int64_t rows : {1, 37})
      check_op(
          {.name = fmt::format("rms_norm {}x{}", rows, width),
           .inputs = {random_tensor({rows, width}, 1, -3, 5), random_tensor({width}, 2, 0.5, 2)},
           .op = [](const std::vector<Variable>& x) { return rms_norm(x[0], x[1], 1e-5f); },
           .reference =
               [=](const std::vector<Doubles>& x) {
                 return reference(x, static_cast<std::size_t>(width), 1e-5);
               },
           .tolerance = 1e-5,
           .gradient_tolerance = 1e-4,
           // The sign of a single element has no gradient to compare, only rounding.
           .constant = {width == 1}});
}

TEST(RmsNorm, AddsToAGradientThatIsThereAlready) {
  check_op(
      {.name = "residual",
       .inputs = {random_tensor({5, 20}, 1, -3, 5), random_tensor({20}, 2, 0.5, 2)},
       .op = [](const std::vector<Variable>& x) { return add(x[0], rms_norm(x[0], x[1], 1e-5f)); },
       .reference =
           [](const std::vector<Doubles>& x) {
             Doubles y = reference(x, 20, 1e-5);
             for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[0][i];
             return y;
           },
       .gradient_tolerance = 1e-4});
}

TEST(RmsNorm, EpsilonKeepsARowOfZerosFinite) {
  const Variable x(Tensor::zeros({2, 8}), true);
  Tape tape;
  const Variable y = rms_norm(x, Tensor::full({8}, 2.0f), 1e-6f);
  tape.backward(y, Tensor::full({2, 8}, 1.0f));
  for (std::int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(y.value().f32()[i], 0.0f);
    EXPECT_NEAR(x.grad().f32()[i], 2.0f / std::sqrt(1e-6f), 0.01f);
  }
}

TEST(RmsNorm, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(rms_norm(Tensor::zeros({2, 3}), Tensor::zeros({4}), 1e-5f), Error);
  EXPECT_THROW(rms_norm(Tensor::zeros({2, 0}), Tensor::zeros({0}), 1e-5f), Error);
  EXPECT_THROW(rms_norm(Tensor::scalar(1.0f), Tensor::zeros({1}), 1e-5f), Error);
}

TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  // The variance of values around 1000 must not drown in rounding.
  const Tensor x = random_tensor({4, 64}, 1, 999.0f, 1001.0f);
  const Tensor one = Tensor::full({64}, 1.0f), zero = Tensor::zeros({64});
  const Tensor y = layer_norm(x, one, zero, 1e-5f).value();
  EXPECT_LT(relative_error(y.values(),
                           reference({to_doubles(x), to_doubles(one), to_doubles(zero)}, 64, 1e-5)),
            2e-4);
}

TEST(LayerNorm, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(layer_norm(Tensor::zeros({2, 3}), Tensor::zeros({4}), Tensor::zeros({4}), 1e-5f),
               Error);
  EXPECT_THROW(layer_norm(Tensor::zeros({2, 0}), Tensor::zeros({0}), Tensor::zeros({0}), 1e-5f),
               Error);
}

}  // namespace
}  // namespace filigree

#include "filigree/ops/layer_norm/layer_norm.h"

#include <cmath>

#include "filigree/base/error.h"
#include "support/check_op.h"

namespace filigree {
namespace {

Doubles reference(const std::vector<Doubles>& in, std::size_t width, double epsilon) {
  Doubles y(in[0].size());
  for (std::size_t r = 0; r < y.size() / width; ++r) {
    const double* x = in[0].data() + r * width;
    double mean = 0.0, variance = 0.0;
    for (std::size_t i = 0; i < width; ++i) mean += x[i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      y[r * width + i] = (x[i] - mean) / std::sqrt(variance + epsilon) * in[1][i] + in[2][i];
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

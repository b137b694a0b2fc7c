#include "ops/reconstruction/reconstruction.h"

#include <gmock/gmock.h>

#include "filigree/error.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(Reconstruction, ErrorAndGradients) {
  const Tensor targets = random_tensor({2, 5, 7}, 3);
  check_op({.name = "reconstruction",
            .inputs = {random_tensor({2, 5, 7}, 1), random_tensor({2, 1, 7}, 2)},
            .op =
                [&](const std::vector<Variable>& in) {
                  return reconstruction(in[0], in[1], targets, 0.3f).error;
                },
            .reference =
                [&](const std::vector<Doubles>& in) {
                  const Doubles y = to_doubles(targets);
                  double error = 0.0;
                  for (std::size_t i = 0; i < y.size(); ++i) {
                    const double d = in[0][i] + in[1][i / 35 * 7 + i % 7] - y[i];
                    error += static_cast<double>(0.3f) * d * d;
                  }
                  return Doubles{error};
                }});
}

TEST(Reconstruction, SquaresOfLayersAboutTheirMean) {
  const Tensor targets = Tensor::from({2, 2, 1}, std::vector<float>{1, 3, 5, 5});
  const Tensor written = Tensor::from({2, 2, 1}, std::vector<float>{1, 2, 5, 8});
  const Reconstruction result = reconstruction(written, {}, targets, 1.0f);
  EXPECT_THAT(result.squares.values(), ::testing::ElementsAre(1.0f, 9.0f, 2.0f, 0.0f));
  EXPECT_THAT(result.difference.values(), ::testing::ElementsAre(0.0f, -1.0f, 0.0f, 3.0f));
  EXPECT_EQ(result.error.value().item(), 10.0f);
  EXPECT_THROW(reconstruction(written, random_tensor({2, 2}, 1), targets, 1.0f), Error);
}

}  // namespace
}  // namespace filigree

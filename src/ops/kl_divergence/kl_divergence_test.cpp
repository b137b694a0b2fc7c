#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

Doubles log_softmax(const double* x, std::size_t width) {
  double total = 0.0;
  for (std::size_t c = 0; c < width; ++c) total += std::exp(x[c]);
  Doubles y;
  for (std::size_t c = 0; c < width; ++c) y.push_back(x[c] - std::log(total));
  return y;
}

TEST(KlDivergence, ValuesAndGradients) {
  for (const std::int64_t width : {2, 16, 19, 150}) {
    const Tensor teacher = random_tensor({5, width}, 8, -4, 4);
    check_op({.name = fmt::format("kl_divergence over {}", width),
              .inputs = {random_tensor({5, width}, 1, -4, 4)},
              .op = [=](const std::vector<Variable>& x) { return kl_divergence(teacher, x[0]); },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    const auto w = static_cast<std::size_t>(width);
                    const Doubles exact = to_doubles(teacher);
                    double total = 0.0;
                    for (std::size_t r = 0; r < 5; ++r) {
                      const Doubles t = log_softmax(exact.data() + r * w, w);
                      const Doubles s = log_softmax(x[0].data() + r * w, w);
                      for (std::size_t c = 0; c < w; ++c)
                        total += std::exp(t[c]) * (t[c] - s[c]) / 5;
                    }
                    return Doubles{total};
                  },
              .gradient_tolerance = 5e-5});
  }
}

// Ignored rows change neither value nor gradient: the same as the counted rows alone.
TEST(KlDivergence, LeavesOutIgnoredPositions) {
  const std::int64_t width = 19;
  const Tensor teacher = random_tensor({3, width}, 8, -4, 4);
  Tensor targets = Tensor::zeros({3}, DType::kI32);
  targets.mutable_i32()[1] = kIgnoredTarget;
  check_op(
      {.name = "kl_divergence with targets",
       .inputs = {random_tensor({3, width}, 1, -4, 4)},
       .op = [=](const std::vector<Variable>& x) { return kl_divergence(teacher, x[0], targets); },
       .reference =
           [=](const std::vector<Doubles>& x) {
             const auto w = static_cast<std::size_t>(width);
             const Doubles exact = to_doubles(teacher);
             double total = 0.0;
             for (std::size_t r : {0, 2}) {
               const Doubles t = log_softmax(exact.data() + r * w, w);
               const Doubles s = log_softmax(x[0].data() + r * w, w);
               for (std::size_t c = 0; c < w; ++c) total += std::exp(t[c]) * (t[c] - s[c]) / 2;
             }
             return Doubles{total};
           },
       .gradient_tolerance = 5e-5});
  targets.mutable_i32()[0] = targets.mutable_i32()[2] = kIgnoredTarget;
  EXPECT_THROW(kl_divergence(teacher, teacher, targets), Error);
  EXPECT_THROW(kl_divergence(teacher, teacher, Tensor::zeros({2}, DType::kI32)), Error);
}

TEST(KlDivergence, OfEqualPredictionsIsZero) {
  const Tensor x = random_tensor({3, 40}, 1, -9, 9);
  EXPECT_NEAR(kl_divergence(x, x).value().item(), 0.0f, 1e-6);
}

TEST(KlDivergence, RefusesDifferentShapes) {
  EXPECT_THROW(kl_divergence(Tensor::zeros({2, 3}), Tensor::zeros({2, 4})), Error);
}

TEST(KlDivergence, OfRowsIsThatOfEachWithItsTeacher) {
  const std::int64_t width = 19;
  const Tensor teacher = random_tensor({3, width}, 8, -4, 4);
  const Tensor student = random_tensor({12, width}, 9, -4, 4);
  const Tensor found = kl_of_rows(teacher, student);
  ASSERT_EQ(found.shape(), Shape({12}));
  for (std::int64_t row = 0; row < 12; ++row) {
    const float wanted =
        kl_divergence(teacher.rows(row % 3, row % 3 + 1), student.rows(row, row + 1))
            .value()
            .item();
    EXPECT_FLOAT_EQ(found.f32()[row], wanted) << row;
  }
  EXPECT_THROW(kl_of_rows(teacher, random_tensor({4, width}, 1)), Error);
  EXPECT_THROW(kl_of_rows(teacher, random_tensor({3, width + 1}, 1)), Error);
}

}  // namespace
}  // namespace filigree

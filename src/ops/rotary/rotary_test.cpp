#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Extents {
  std::int64_t B, T, H, D, R;
};

Tensor angles(const Extents& e) { return random_tensor({e.T, e.R}, 5, -7.0f, 7.0f); }

Tensor each(const Tensor& x, float (*f)(float)) {
  Tensor y = Tensor::empty(x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i) y.mutable_f32()[i] = f(x.f32()[i]);
  return y;
}

Doubles reference(const Doubles& x, const Extents& e, const Tensor& cos, const Tensor& sin) {
  Doubles y = x;
  for (std::int64_t row = 0; row < e.B * e.T * e.H; ++row)
    for (std::int64_t i = 0; i < e.R; ++i) {
      const auto a = static_cast<std::size_t>(row * e.D + i), b = a + static_cast<std::size_t>(e.R);
      const std::int64_t at = row / e.H % e.T * e.R + i;
      const auto c = static_cast<double>(cos.f32()[at]), s = static_cast<double>(sin.f32()[at]);
      y[a] = x[a] * c - x[b] * s;
      y[b] = x[b] * c + x[a] * s;
    }
  return y;
}

TEST(Rotary, ValuesAndGradients) {
  for (const Extents e : {Extents{1, 1, 1, 2, 1},
                          {2, 3, 2, 8, 4},
                          {2, 5, 3, 20, 10},
                          {1, 7, 2, 20, 3},     // some elements stay
                          {2, 300, 3, 32, 16},  // several ranges
                          {2, 4, 2, 6, 0}}) {
    const Tensor turn = angles(e);
    const Tensor cos = each(turn, std::cos), sin = each(turn, std::sin);
    check_op(
        {.name = fmt::format("rotary {} {} {} {} {}", e.B, e.T, e.H, e.D, e.R),
         .inputs = {random_tensor({e.B, e.T, e.H, e.D}, 1)},
         .op = [&](const std::vector<Variable>& x) { return rotary(x[0], cos, sin); },
         .reference = [&](const std::vector<Doubles>& x) { return reference(x[0], e, cos, sin); }});
  }
}

TEST(Rotary, ScoresDependOnDistancesAlone) {
  // The same query and key at every position.
  const Extents e = {1, 12, 1, 8, 4};
  Tensor turn = Tensor::empty({e.T, e.R});
  for (std::int64_t t = 0; t < e.T; ++t)
    for (std::int64_t i = 0; i < e.R; ++i)
      turn.mutable_f32()[t * e.R + i] = static_cast<float>(t) / static_cast<float>(1 << i);
  const Tensor cos = each(turn, std::cos), sin = each(turn, std::sin);
  const auto everywhere = [&](std::uint64_t seed) {
    const Tensor one = random_tensor({e.D}, seed);
    Tensor all = Tensor::empty({1, e.T, 1, e.D});
    for (std::int64_t i = 0; i < all.elements(); ++i) all.mutable_f32()[i] = one.f32()[i % e.D];
    return rotary(all, cos, sin).value();
  };
  const Tensor q = everywhere(1), k = everywhere(2);
  const auto score = [&](std::int64_t a, std::int64_t b) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < e.D; ++i)
      sum += static_cast<double>(q.f32()[a * e.D + i]) * static_cast<double>(k.f32()[b * e.D + i]);
    return sum;
  };
  EXPECT_NEAR(score(5, 2), score(11, 8), 1e-5);
  EXPECT_GT(std::abs(score(5, 2) - score(11, 2)), 1e-2);
}

TEST(Rotary, RefusesShapesThatDoNotFit) {
  const Tensor x = Tensor::zeros({1, 4, 2, 8});
  EXPECT_THROW(rotary(x, Tensor::zeros({3, 4}), Tensor::zeros({3, 4})), Error);
  EXPECT_THROW(rotary(x, Tensor::zeros({4, 5}), Tensor::zeros({4, 5})), Error);
  EXPECT_THROW(rotary(x, Tensor::zeros({4, 4}), Tensor::zeros({4, 2})), Error);
  EXPECT_THROW(rotary(x.reshape({4, 16}), Tensor::zeros({4, 4}), Tensor::zeros({4, 4})), Error);
}

}  // namespace
}  // namespace filigree

#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct BinaryCase {
  const char* name;
  Variable (*op)(const Variable&, const Variable&);
  double (*exact)(double, double);
};

const BinaryCase kBinary[] = {{"add", add, [](double a, double b) { return a + b; }},
                              {"sub", sub, [](double a, double b) { return a - b; }},
                              {"mul", mul, [](double a, double b) { return a * b; }},
                              {"div", div, [](double a, double b) { return a / b; }}};

// The element of an operand that stands at the flat place `at` of the result.
std::size_t source_place(const Shape& operand, const Shape& result, std::int64_t at) {
  std::int64_t place = 0, stride = 1;
  for (int i = 1; i <= result.rank(); ++i) {
    const std::int64_t index = at % result[-i];
    at /= result[-i];
    if (i <= operand.rank()) {
      if (operand[-i] != 1) place += index * stride;
      stride *= operand[-i];
    }
  }
  return static_cast<std::size_t>(place);
}

TEST(Elementwise, BinaryValuesAndGradientsWithEveryBroadcast) {
  const std::pair<Shape, Shape> shapes[] = {
      {{}, {}},         {{5}, {5}},          {{4099}, {4099}},
      {{3, 7}, {7}},    {{7}, {3, 7}},       {{3, 7}, {3, 1}},
      {{3, 1}, {1, 7}}, {{2, 3, 5}, {3, 1}}, {{2, 1, 5, 4}, {3, 1, 4}},
      {{2, 3}, {}},     {{}, {4}},           {{2, 3, 1, 2, 1, 4}, {3, 5, 1, 3, 1}}};
  for (const BinaryCase& b : kBinary)
    for (const auto& [left, right] : shapes) {
      const Shape result = broadcast_shape(b.name, left, right);
      check_op({.name = fmt::format("{} {} {}", b.name, left.to_string(), right.to_string()),
                .inputs = {random_tensor(left, 1), random_tensor(right, 2, 0.5, 2)},
                .op = [&](const std::vector<Variable>& x) { return b.op(x[0], x[1]); },
                .reference =
                    [&, l = left, r = right](const std::vector<Doubles>& x) {
                      Doubles y;
                      for (std::int64_t i = 0; i < result.elements(); ++i)
                        y.push_back(b.exact(x[0][source_place(l, result, i)],
                                            x[1][source_place(r, result, i)]));
                      return y;
                    }});
    }
}

TEST(Elementwise, RefusesShapesThatDoNotBroadcast) {
  EXPECT_THROW(add(Tensor::zeros({2, 3}), Tensor::zeros({2})), Error);
}

TEST(Elementwise, OneOperandTwiceGetsBothGradients) {
  check_op({.name = "x * x",
            .inputs = {random_tensor({19}, 1)},
            .op = [](const std::vector<Variable>& x) { return mul(x[0], x[0]); },
            .reference =
                [](const std::vector<Doubles>& x) {
                  Doubles y;
                  for (double v : x[0]) y.push_back(v * v);
                  return y;
                }});
}

struct UnaryCase {
  const char* name;
  std::function<Variable(const Variable&)> op;
  double (*exact)(double);
  float low, high;
};

TEST(Elementwise, UnaryValuesAndGradients) {
  const UnaryCase cases[] = {{"scale", [](const Variable& x) { return scale(x, -2.5f); },
                              [](double x) { return -2.5 * x; }, -3, 3},
                             {"shift", [](const Variable& x) { return shift(x, 0.25f); },
                              [](double x) { return x + 0.25; }, -3, 3},
                             {"exp", [](const Variable& x) { return exp(x); },
                              [](double x) { return std::exp(x); }, -5, 3},
                             {"log", [](const Variable& x) { return log(x); },
                              [](double x) { return std::log(x); }, 0.1f, 9},
                             {"sqrt", [](const Variable& x) { return sqrt(x); },
                              [](double x) { return std::sqrt(x); }, 0.1f, 9},
                             {"square", [](const Variable& x) { return square(x); },
                              [](double x) { return x * x; }, -3, 3},
                             {"tanh", [](const Variable& x) { return tanh(x); },
                              [](double x) { return std::tanh(x); }, -2, 2},
                             {"clamp", [](const Variable& x) { return clamp(x, 0.75f); },
                              [](double x) { return std::clamp(x, -0.75, 0.75); }, -2, 2},
                             {"soft_cap", [](const Variable& x) { return soft_cap(x, 3.0f); },
                              [](double x) { return 3.0 * std::tanh(x / 3.0); }, -8, 8}};
  for (const UnaryCase& u : cases)
    for (const std::int64_t count : {1, 16, 37, 70000})
      check_op({.name = fmt::format("{} of {}", u.name, count),
                .inputs = {random_tensor({count}, 1, u.low, u.high)},
                .op = [&](const std::vector<Variable>& x) { return u.op(x[0]); },
                .reference =
                    [&](const std::vector<Doubles>& x) {
                      Doubles y;
                      for (double v : x[0]) y.push_back(u.exact(v));
                      return y;
                    }});
}

TEST(Elementwise, ExpIsExactToRoundingOverItsRange) {
  const EveryLevel levels;
  std::vector<float> xs;
  for (float x = -87.0f; x < 88.0f; x += 0.013f) xs.push_back(x);
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    const Tensor y = exp(Tensor::from({static_cast<std::int64_t>(xs.size())}, xs)).value();
    for (std::size_t i = 0; i < xs.size(); ++i)
      EXPECT_NEAR(static_cast<double>(y.f32()[i]) / std::exp(static_cast<double>(xs[i])), 1.0, 3e-7)
          << xs[i];
    const std::vector<float> ends = {-INFINITY, -1000.0f, 0.0f};
    const Tensor z = exp(Tensor::from({3}, ends)).value();
    EXPECT_EQ(z.f32()[0], 0.0f);
    EXPECT_EQ(z.f32()[1], 0.0f);
    EXPECT_EQ(z.f32()[2], 1.0f);
  }
}

}  // namespace
}  // namespace filigree

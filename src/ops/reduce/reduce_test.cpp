#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

// x [outer, extent, inner] reduced over the middle.
Doubles reduced(const Doubles& x, std::int64_t outer, std::int64_t extent, std::int64_t inner,
                const std::function<double(const Doubles&)>& f) {
  Doubles y;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      Doubles column;
      for (std::int64_t k = 0; k < extent; ++k)
        column.push_back(x[static_cast<std::size_t>((o * extent + k) * inner + i)]);
      y.push_back(f(column));
    }
  return y;
}

double total(const Doubles& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum;
}

TEST(Reduce, ValuesAndGradientsOverEveryAxis) {
  const Shape shape{3, 7, 5};
  for (int axis = -3; axis < 3; ++axis)
    for (const bool keep : {false, true}) {
      const std::int64_t outer = shape.outer(axis), extent = shape[axis], inner = shape.inner(axis);
      const auto check = [&](const char* name, auto op,
                             const std::function<double(const Doubles&)>& f) {
        check_op({.name = fmt::format("{} over axis {}", name, axis),
                  .inputs = {random_tensor(shape, 1)},
                  .op = [&](const std::vector<Variable>& x) { return op(x[0], axis, keep); },
                  .reference =
                      [&](const std::vector<Doubles>& x) {
                        return reduced(x[0], outer, extent, inner, f);
                      }});
      };
      check("sum", sum, total);
      check("mean", mean,
            [](const Doubles& x) { return total(x) / static_cast<double>(x.size()); });
      check("maximum", maximum,
            [](const Doubles& x) { return *std::max_element(x.begin(), x.end()); });
      EXPECT_EQ(sum(Tensor::zeros(shape), axis, keep).shape().rank(), keep ? 3 : 2);
    }
}

TEST(Reduce, OverEverything) {
  check_op({.name = "sum_all",
            .inputs = {random_tensor({3, 4, 5}, 1)},
            .op = [](const std::vector<Variable>& x) { return sum_all(x[0]); },
            .reference = [](const std::vector<Doubles>& x) { return Doubles{total(x[0])}; }});
  check_op({.name = "mean_all",
            .inputs = {random_tensor({3, 4, 5}, 1)},
            .op = [](const std::vector<Variable>& x) { return mean_all(x[0]); },
            .reference = [](const std::vector<Doubles>& x) { return Doubles{total(x[0]) / 60}; }});
}

TEST(Reduce, ArgmaxTakesTheFirstOfEqualValues) {
  const std::vector<float> values = {1, 3, 3, -1, -5, -5};
  const Tensor places = argmax(Tensor::from({2, 3}, values));
  EXPECT_EQ(places.shape(), Shape({2}));
  EXPECT_EQ(places.i32()[0], 1);
  EXPECT_EQ(places.i32()[1], 0);
}

TEST(Reduce, RefusesEmptyAndMissingAxes) {
  EXPECT_THROW(maximum(Tensor::zeros({2, 0}), 1), Error);
  EXPECT_THROW(sum(Tensor::zeros({2, 3}), 2), Error);
}

}  // namespace
}  // namespace filigree

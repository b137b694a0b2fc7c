#include "ops/linear/linear_by_head.h"

#include "filigree/error.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Layer {
  std::int64_t rows, heads, in, all, begin, count;
  bool out_in, bias;
};

void check_layer(const Layer& l) {
  const std::int64_t out = (l.count < 0 ? l.all : l.count) / l.heads;
  std::vector<Tensor> inputs = {
      random_tensor({l.rows, l.heads, l.in}, 1, -2, 2),
      random_tensor(l.out_in ? Shape{l.all, l.in} : Shape{l.in, l.all}, 2)};
  if (l.bias) inputs.push_back(random_tensor({l.all}, 3));
  check_op({.name = fmt::format("linear_by_head {}x{}x{} out_in {} bias {}", l.rows, l.heads, l.in,
                                l.out_in, l.bias),
            .inputs = inputs,
            .op =
                [=](const std::vector<Variable>& x) {
                  return linear_by_head(
                      x[0], {x[1], l.bias ? x[2] : Variable(), l.out_in, l.begin, l.count});
                },
            .reference =
                [=](const std::vector<Doubles>& x) {
                  Doubles y;
                  for (std::int64_t r = 0; r < l.rows * l.heads; ++r)
                    for (std::int64_t j = 0; j < out; ++j) {
                      const std::int64_t o = l.begin + r % l.heads * out + j;
                      double total = l.bias ? x[2][static_cast<std::size_t>(o)] : 0.0;
                      for (std::int64_t i = 0; i < l.in; ++i)
                        total +=
                            x[0][static_cast<std::size_t>(r * l.in + i)] *
                            x[1][static_cast<std::size_t>(l.out_in ? o * l.in + i : i * l.all + o)];
                      y.push_back(total);
                    }
                  return y;
                },
            .tolerance = 3e-6});
}

TEST(LinearByHead, ValuesAndGradients) {
  for (const bool out_in : {false, true})
    for (const bool bias : {false, true}) {
      check_layer({5, 3, 7, 12, 0, -1, out_in, bias});
      check_layer({33, 4, 20, 60, 12, 32, out_in, bias});
    }
}

TEST(LinearByHead, RefusesHeadsThatDoNotDivideTheOutputs) {
  const Variable x = Tensor::zeros({2, 5, 4}), weight = Tensor::zeros({4, 12});
  EXPECT_THROW(linear_by_head(x, {weight, Variable()}), Error);
}

TEST(RepeatForHeads, ValuesAndGradients) {
  check_op({.name = "repeat_for_heads",
            .inputs = {random_tensor({37, 6}, 1)},
            .op = [](const std::vector<Variable>& x) { return repeat_for_heads(x[0], 3); },
            .reference =
                [](const std::vector<Doubles>& x) {
                  Doubles y;
                  for (std::size_t row = 0; row < 37; ++row)
                    for (std::size_t i = 0; i < 18; ++i) y.push_back(x[0][row * 6 + i % 6]);
                  return y;
                }});
}

}  // namespace
}  // namespace filigree

#include <utility>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/activation/activation_test_support.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Layer {
  std::int64_t rows, in, all, begin, count;
  bool out_in, bias;
  Activation f;
};

void check_layer(const Layer& l) {
  const std::int64_t out = l.count < 0 ? l.all : l.count;
  std::vector<Tensor> inputs = {
      random_tensor({l.rows, l.in}, 1, -2, 2),
      random_tensor(l.out_in ? Shape{l.all, l.in} : Shape{l.in, l.all}, 2)};
  if (l.bias) inputs.push_back(random_tensor({l.all}, 3));
  check_op(
      {.name = fmt::format("linear {}x{}->{} [{}+{}] out_in {} bias {} {}", l.rows, l.in, l.all,
                           l.begin, l.count, l.out_in, l.bias, text_of(l.f)),
       .inputs = inputs,
       .op =
           [=](const std::vector<Variable>& x) {
             const LinearWeight w{x[1], l.bias ? x[2] : Variable(), l.out_in, l.begin, l.count};
             return linear(x[0], w, l.f);
           },
       .reference =
           [=](const std::vector<Doubles>& x) {
             Doubles y;
             for (std::int64_t r = 0; r < l.rows; ++r)
               for (std::int64_t o = l.begin; o < l.begin + out; ++o) {
                 double total = l.bias ? x[2][static_cast<std::size_t>(o)] : 0.0;
                 for (std::int64_t i = 0; i < l.in; ++i)
                   total += x[0][static_cast<std::size_t>(r * l.in + i)] *
                            x[1][static_cast<std::size_t>(l.out_in ? o * l.in + i : i * l.all + o)];
                 y.push_back(exactly(l.f, total));
               }
             return y;
           },
       .tolerance = 3e-6});
}

TEST(FeedForward, ValuesAndGradients) {
  for (const auto& [rows, f] : {std::pair<std::int64_t, Activation>{1, Activation::kGeluNew},
                                {5, Activation::kGeluNew},
                                {33, Activation::kGeluNew},
                                {33, Activation::kGelu},
                                {33, Activation::kRelu},
                                {33, Activation::kSilu}}) {
    constexpr std::size_t kIn = 6, kHidden = 20, kOut = 7;
    check_op({.name = fmt::format("feed_forward of {} rows, {}", rows, text_of(f)),
              .inputs = {random_tensor({rows, 6}, 1, -2, 2), random_tensor({6, 20}, 2),
                         random_tensor({20}, 3), random_tensor({20, 7}, 4), random_tensor({7}, 5)},
              .op =
                  [f = f](const std::vector<Variable>& x) {
                    return feed_forward(x[0], {x[1], x[2]}, {x[3], x[4]}, f);
                  },
              .reference =
                  [rows = rows, f = f](const std::vector<Doubles>& x) {
                    Doubles y;
                    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
                      Doubles hidden(kHidden);
                      for (std::size_t h = 0; h < kHidden; ++h) {
                        hidden[h] = x[2][h];
                        for (std::size_t i = 0; i < kIn; ++i)
                          hidden[h] += x[0][r * kIn + i] * x[1][i * kHidden + h];
                        hidden[h] = exactly(f, hidden[h]);
                      }
                      for (std::size_t o = 0; o < kOut; ++o) {
                        y.push_back(x[4][o]);
                        for (std::size_t h = 0; h < kHidden; ++h)
                          y.back() += hidden[h] * x[3][h * kOut + o];
                      }
                    }
                    return y;
                  },
              .tolerance = 3e-6});
  }
}

TEST(Linear, ValuesAndGradients) {
  for (const bool out_in : {false, true})
    for (const bool bias : {false, true})
      for (const Activation f : {Activation::kNone, Activation::kGeluNew}) {
        check_layer({5, 7, 9, 0, -1, out_in, bias, f});
        check_layer({1, 20, 50, 0, -1, out_in, bias, f});
        check_layer({33, 24, 60, 12, 24, out_in, bias, f});
      }
  for (const Activation f : kActivations) check_layer({33, 24, 60, 12, 24, true, true, f});
}

TEST(Linear, PreActivationIsTheValueBeforeIt) {
  const Tensor x = random_tensor({3, 4}, 1), w = random_tensor({4, 5}, 2),
               b = random_tensor({5}, 3);
  Tensor pre;
  linear(x, {w, b}, Activation::kSilu, &pre);
  const Tensor plain = linear(x, {w, b}).value();
  EXPECT_TRUE(std::equal(pre.values().begin(), pre.values().end(), plain.values().begin()));
}

TEST(Linear, RangesOfOneFusedMatrixShareItsGradient) {
  // Three thirds of a fused matrix give the same gradient as the whole.
  const Tensor x = random_tensor({6, 8}, 1), w = random_tensor({8, 12}, 2),
               b = random_tensor({12}, 3);
  const Tensor seed = random_tensor({6, 12}, 4);
  const Variable whole(w, true), parts(w, true), whole_bias(b, true), parts_bias(b, true);
  {
    Tape tape;
    tape.backward(linear(x, {whole, whole_bias}), seed);
  }
  for (std::int64_t i = 0; i < 3; ++i) {
    Tensor part = Tensor::empty({6, 4});
    for (std::int64_t k = 0; k < 24; ++k)
      part.mutable_f32()[k] = seed.f32()[k / 4 * 12 + i * 4 + k % 4];
    Tape tape;
    tape.backward(linear(x, {parts, parts_bias, false, i * 4, 4}), part);
  }
  EXPECT_LT(relative_error(parts.grad().values(), to_doubles(whole.grad())), 1e-6);
  EXPECT_LT(relative_error(parts_bias.grad().values(), to_doubles(whole_bias.grad())), 1e-6);
}

TEST(LinearSum, ValuesAndGradients) {
  // A part of a fused matrix plus a narrow product, in both layouts.
  for (const bool out_in : {false, true}) {
    const std::int64_t rows = 13, in = 10, all = 14, begin = 4, out = 7, rank = 3;
    const auto at = [](const Doubles& values, std::int64_t i) {
      return values[static_cast<std::size_t>(i)];
    };
    check_op(
        {.name = fmt::format("linear_sum, out_in {}", out_in),
         .inputs = {random_tensor({rows, in}, 1, -2, 2),
                    random_tensor(out_in ? Shape{all, in} : Shape{in, all}, 2),
                    random_tensor({all}, 3), random_tensor({rows, rank}, 4, -2, 2),
                    random_tensor({rank, out}, 5)},
         .op =
             [=](const std::vector<Variable>& x) {
               return linear_sum(x[0], {x[1], x[2], out_in, begin, out}, x[3], {x[4], Variable()});
             },
         .reference =
             [=](const std::vector<Doubles>& x) {
               Doubles y;
               for (std::int64_t r = 0; r < rows; ++r)
                 for (std::int64_t o = 0; o < out; ++o) {
                   const std::int64_t column = begin + o;
                   double total = at(x[2], column);
                   for (std::int64_t i = 0; i < in; ++i)
                     total += at(x[0], r * in + i) *
                              at(x[1], out_in ? column * in + i : i * all + column);
                   for (std::int64_t k = 0; k < rank; ++k)
                     total += at(x[3], r * rank + k) * at(x[4], k * out + o);
                   y.push_back(total);
                 }
               return y;
             },
         .tolerance = 3e-6});
  }
}

TEST(LinearSum, RefusesShapesThatDoNotFit) {
  const Tensor x = Tensor::zeros({2, 3}), w = Tensor::zeros({3, 5});
  const auto sum = [&](const Tensor& h, const Tensor& u) {
    return linear_sum(x, {w, Variable()}, h, {u, Variable()});
  };
  EXPECT_EQ(sum(Tensor::zeros({2, 1}), Tensor::zeros({1, 5})).shape(), Shape({2, 5}));
  EXPECT_THROW(sum(Tensor::zeros({2, 1}), Tensor::zeros({1, 4})), Error);
  EXPECT_THROW(sum(Tensor::zeros({3, 1}), Tensor::zeros({1, 5})), Error);
  EXPECT_THROW(sum(Tensor::zeros({2, 2}), Tensor::zeros({1, 5})), Error);
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(linear(Tensor::zeros({2, 3}), {Tensor::zeros({4, 5}), Variable()}), Error);
  EXPECT_THROW(linear(Tensor::zeros({2, 4}), {Tensor::zeros({4, 5}), Tensor::zeros({4})}), Error);
  EXPECT_THROW(linear(Tensor::zeros({2, 4}), {Tensor::zeros({4, 5}), Variable(), false, 3, 3}),
               Error);
}

}  // namespace
}  // namespace filigree

#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Case {
  std::int64_t B, Tq, Tk, H, G, D;
  std::int64_t window = 0;
  float cap = 0.0f;
  bool bidirectional = false;

  ScoreMask mask() const { return {window, cap, bidirectional}; }
};

// Single queries, whole and partial blocks, head widths below and beside a vector, grouped heads.
const Case kCases[] = {{1, 1, 1, 1, 1, 4},    {2, 13, 13, 3, 3, 8},  {1, 33, 33, 2, 1, 16},
                       {1, 5, 9, 4, 2, 12},   {1, 70, 70, 1, 1, 64}, {2, 20, 47, 2, 2, 24},
                       {1, 130, 130, 2, 2, 5}};

// Windows of one key, of part of a vector, over blocks, longer than the text; caps; both; queries
// that see what is behind them.
const Case kMaskedCases[] = {{2, 13, 13, 3, 3, 8, 1},
                             {1, 33, 33, 2, 1, 16, 5, 1.5f},
                             {1, 5, 9, 4, 2, 12, 3},
                             {1, 70, 70, 1, 1, 64, 17},
                             {2, 20, 47, 2, 2, 24, 0, 2},
                             {1, 130, 130, 2, 2, 5, 66, 0.7f},
                             {1, 130, 130, 1, 1, 8, 200},
                             {1, 2, 40, 2, 2, 8, 19, 3},
                             {2, 13, 13, 3, 3, 8, 0, 0, true},
                             {1, 5, 9, 4, 2, 12, 0, 0, true},
                             {1, 130, 130, 2, 1, 5, 0, 0.7f, true}};

std::string name(const char* op, const Case& c) {
  return fmt::format("{} B{} Tq{} Tk{} H{} G{} D{} window {} cap {} bidirectional {}", op, c.B,
                     c.Tq, c.Tk, c.H, c.G, c.D, c.window, c.cap, c.bidirectional);
}

struct Exact {
  Doubles scores, pattern, z, lse;
};

Exact exact(const Case& c, const std::vector<Doubles>& in) {
  Exact out;
  const std::int64_t past = c.Tk - c.Tq, group = c.H / c.G;
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.D));
  out.z.resize(in[0].size());
  for (std::int64_t b = 0; b < c.B; ++b)
    for (std::int64_t h = 0; h < c.H; ++h)
      for (std::int64_t i = 0; i < c.Tq; ++i) {
        const auto at = [&](std::int64_t t, std::int64_t T, std::int64_t heads, std::int64_t head) {
          return static_cast<std::size_t>(((b * T + t) * heads + head) * c.D);
        };
        const double* q = in[0].data() + at(i, c.Tq, c.H, h);
        Doubles s(static_cast<std::size_t>(c.Tk), -INFINITY);
        double maximum = -INFINITY, total = 0.0;
        for (std::int64_t j = 0; j < (c.bidirectional ? c.Tk : past + i + 1); ++j) {
          const double* k = in[1].data() + at(j, c.Tk, c.G, h / group);
          if (c.window > 0 && past + i - j >= c.window) continue;
          double dot = 0.0;
          for (std::int64_t d = 0; d < c.D; ++d) dot += q[d] * k[d];
          const auto cap = static_cast<double>(c.cap);
          const double score = cap > 0.0 ? cap * std::tanh(dot * scale / cap) : dot * scale;
          s[static_cast<std::size_t>(j)] = score;
          maximum = std::max(maximum, score);
        }
        for (double x : s) total += std::exp(x - maximum);
        out.lse.push_back(maximum + std::log(total));
        double* z = out.z.data() + at(i, c.Tq, c.H, h);
        for (std::int64_t j = 0; j < c.Tk; ++j) {
          const double x = s[static_cast<std::size_t>(j)];
          const double weight = std::exp(x - maximum) / total;
          out.scores.push_back(x);
          out.pattern.push_back(weight);
          const double* v = in[2].data() + at(j, c.Tk, c.G, h / group);
          for (std::int64_t d = 0; d < c.D; ++d) z[d] += weight * v[d];
        }
      }
  return out;
}

std::vector<Tensor> inputs(const Case& c) {
  return {random_tensor({c.B, c.Tq, c.H, c.D}, 1, -2, 2),
          random_tensor({c.B, c.Tk, c.G, c.D}, 2, -2, 2),
          random_tensor({c.B, c.Tk, c.G, c.D}, 3, -2, 2)};
}

TEST(Attention, ValuesAndGradients) {
  for (const Case& c : kCases)
    check_op({.name = name("attention", c),
              .inputs = inputs(c),
              .op = [](const std::vector<Variable>& x) { return attention(x[0], x[1], x[2]); },
              .reference = [=](const std::vector<Doubles>& x) { return exact(c, x).z; },
              .gradient_tolerance = 5e-5,
              // With one key the softmax has no slope: q and k see only rounding.
              .constant = {c.Tk == 1, c.Tk == 1}});
}

TEST(Attention, WindowsAndSoftCaps) {
  for (const Case& c : kMaskedCases) {
    const bool alone = c.window == 1;  // one key a query
    check_op({.name = name("attention", c),
              .inputs = inputs(c),
              .op =
                  [=](const std::vector<Variable>& x) {
                    return attention(x[0], x[1], x[2], {.mask = c.mask()});
                  },
              .reference = [=](const std::vector<Doubles>& x) { return exact(c, x).z; },
              .gradient_tolerance = 5e-5,
              .constant = {alone, alone}});
    check_op({.name = name("attention_scores", c),
              .inputs = {inputs(c)[0], inputs(c)[1]},
              .op =
                  [=](const std::vector<Variable>& x) {
                    return attention_scores(x[0], x[1], 0.0f, c.mask());
                  },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    return exact(c, {x[0], x[1], x[1]}).scores;
                  }});
  }
}

TEST(Attention, MapsAndLogSumExp) {
  const EveryLevel levels;
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.insert(cases.end(), std::begin(kMaskedCases), std::end(kMaskedCases));
  for (SimdLevel level : EveryLevel::available())
    for (const Case& c : cases) {
      set_simd_level(level);
      const std::vector<Tensor> in = inputs(c);
      Tensor pattern, lse;
      const Tensor z = attention(in[0], in[1], in[2],
                                 {.mask = c.mask(), .pattern = &pattern, .log_sum_exp = &lse})
                           .value();
      const Exact expected = exact(c, {to_doubles(in[0]), to_doubles(in[1]), to_doubles(in[2])});
      EXPECT_LT(relative_error(pattern.values(), expected.pattern), 3e-6) << name("pattern", c);
      EXPECT_LT(relative_error(lse.values(), expected.lse), 3e-6) << name("lse", c);
      // Asking for maps must not change the result.
      const Tensor plain = attention(in[0], in[1], in[2], {.mask = c.mask()}).value();
      EXPECT_TRUE(std::equal(z.raw(), z.raw() + z.bytes(), plain.raw()));
      for (std::int64_t i = 0; i < pattern.elements(); ++i) {
        const std::int64_t key = i % c.Tk, query = i / c.Tk % c.Tq;
        const std::int64_t position = c.Tk - c.Tq + query;
        if ((!c.bidirectional && key > position) || (c.window > 0 && position - key >= c.window)) {
          EXPECT_EQ(pattern.f32()[i], 0.0f);
        }
      }
    }
}

TEST(Attention, ReadsOnlyTheFilledPartOfACache) {
  const Case c{2, 3, 11, 4, 2, 8};
  const std::vector<Tensor> in = inputs(c);
  // The same keys and values at the front of a longer cache whose rest is not a number.
  const auto cached = [&](const Tensor& x) {
    Tensor longer = Tensor::full({c.B, 20, c.G, c.D}, NAN);
    const std::int64_t row = c.G * c.D;
    for (std::int64_t b = 0; b < c.B; ++b)
      std::copy_n(x.f32() + b * c.Tk * row, c.Tk * row, longer.mutable_f32() + b * 20 * row);
    return longer;
  };
  const Tensor plain = attention(in[0], in[1], in[2]).value();
  const Tensor from_cache = attention(in[0], cached(in[1]), cached(in[2]), {.keys = c.Tk}).value();
  EXPECT_TRUE(std::equal(plain.raw(), plain.raw() + plain.bytes(), from_cache.raw()));
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Tensor q = Tensor::full({1, 9, 1, 4}, 200.0f), k = random_tensor({1, 9, 1, 4}, 2, -200, 200);
  const Tensor v = random_tensor({1, 9, 1, 4}, 3);
  const Exact expected = exact({1, 9, 9, 1, 1, 4}, {to_doubles(q), to_doubles(k), to_doubles(v)});
  EXPECT_LT(relative_error(attention(q, k, v).value().values(), expected.z), 1e-5);
}

TEST(AttentionParts, ScoresValuesAndGradients) {
  for (const Case& c : kCases)
    check_op({.name = name("attention_scores", c),
              .inputs = {inputs(c)[0], inputs(c)[1]},
              .op = [](const std::vector<Variable>& x) { return attention_scores(x[0], x[1]); },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    return exact(c, {x[0], x[1], x[1]}).scores;
                  }});
}

TEST(AttentionParts, MixValuesAndGradients) {
  for (const Case& c : kCases)
    check_op(
        {.name = name("attention_mix", c),
         .inputs = {random_tensor({c.B, c.H, c.Tq, c.Tk}, 4), inputs(c)[2]},
         .op = [](const std::vector<Variable>& x) { return attention_mix(x[0], x[1]); },
         .reference =
             [=](const std::vector<Doubles>& x) {
               Doubles z(static_cast<std::size_t>(c.B * c.Tq * c.H * c.D));
               for (std::int64_t b = 0; b < c.B; ++b)
                 for (std::int64_t h = 0; h < c.H; ++h)
                   for (std::int64_t i = 0; i < c.Tq; ++i)
                     for (std::int64_t j = 0; j < c.Tk; ++j)
                       for (std::int64_t d = 0; d < c.D; ++d)
                         z[static_cast<std::size_t>(((b * c.Tq + i) * c.H + h) * c.D + d)] +=
                             x[0][static_cast<std::size_t>(((b * c.H + h) * c.Tq + i) * c.Tk + j)] *
                             x[1][static_cast<std::size_t>(
                                 ((b * c.Tk + j) * c.G + h / (c.H / c.G)) * c.D + d)];
               return z;
             }});
}

TEST(AttentionParts, TogetherTheyAreTheFusedForm) {
  const Case c{2, 17, 17, 4, 2, 8};
  const std::vector<Tensor> in = inputs(c);
  const Tensor fused = attention(in[0], in[1], in[2]).value();
  const Tensor parts = attention_mix(softmax(attention_scores(in[0], in[1])), in[2]).value();
  EXPECT_LT(relative_error(parts.values(), to_doubles(fused)), 2e-6);
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const Tensor q = Tensor::zeros({1, 4, 4, 8});
  EXPECT_THROW(attention(q, Tensor::zeros({1, 4, 3, 8}), Tensor::zeros({1, 4, 3, 8})), Error);
  EXPECT_THROW(attention(q, Tensor::zeros({1, 3, 4, 8}), Tensor::zeros({1, 3, 4, 8})), Error);
  EXPECT_THROW(attention(q, Tensor::zeros({1, 4, 4, 8}), Tensor::zeros({1, 4, 4, 4})), Error);
  EXPECT_THROW(attention(q, q, q, {.mask = {.window = -1}}), Error);
  EXPECT_THROW(attention(q, q, q, {.mask = {.soft_cap = NAN}}), Error);
  EXPECT_THROW(attention(q, q, q, {.mask = {.window = 2, .bidirectional = true}}), Error);
}

}  // namespace
}  // namespace filigree

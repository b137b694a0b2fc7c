#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Case {
  std::int64_t B, T, H, G, D;
};

std::vector<Tensor> inputs(const Case& c, float spread = 2.0f) {
  return {random_tensor({c.B, c.T, c.H, c.D}, 1, -spread, spread),
          random_tensor({c.B, c.T, c.G, c.D}, 2, -spread, spread),
          random_tensor({c.B, c.T, c.G, c.D}, 3, -spread, spread)};
}

Tensor mask_of(const Case& c, float bias, const GateNoise& noise, int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  const std::vector<Tensor> in = inputs(c);
  Tensor mask;
  GatedAttentionOptions options;
  options.gate = {Tensor::full({1}, bias), true, noise, Tensor()};
  options.mask = &mask;
  gated_attention(in[0], in[1], in[2], options);
  set_num_threads(before);
  return mask;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw());
}

TEST(GatedAttention, WithEveryGateOpenItIsOrdinaryAttention) {
  for (const Case& c : {Case{2, 13, 3, 3, 8}, Case{1, 70, 4, 2, 16}, Case{1, 3, 1, 1, 4}}) {
    const std::vector<Tensor> in = inputs(c);
    const Tensor plain = attention(in[0], in[1], in[2]).value();
    GatedAttentionOptions options;
    options.gate.bias = Tensor::full({1}, 1e6f);
    const GatedAttention gated = gated_attention(in[0], in[1], in[2], options);
    EXPECT_LT(relative_error(gated.z.value().values(), to_doubles(plain)), 1e-6);
    for (float active : gated.active.values()) EXPECT_EQ(active, 1.0f);
    options.gate.bias = Tensor::full({1}, -1e6f);
    const GatedAttention closed = gated_attention(in[0], in[1], in[2], options);
    for (float z : closed.z.value().values()) EXPECT_EQ(z, 0.0f);
    for (float p : closed.expected.value().values()) EXPECT_LT(p, 1e-30f);
  }
}

// The expected-edge fraction is smooth, so its gradient is a plain derivative.
TEST(GatedAttention, ExpectedEdgesAndTheirGradients) {
  for (const Case& c : {Case{2, 9, 2, 1, 5}, Case{1, 70, 2, 2, 8}})
    for (const bool per_head : {false, true})
      check_op(
          {.name = fmt::format("expected edges T{} per head {}", c.T, per_head),
           .inputs = {inputs(c)[0], inputs(c)[1], random_tensor({per_head ? c.H : 1}, 4, -1, 1)},
           .op =
               [=](const std::vector<Variable>& x) {
                 GatedAttentionOptions options;
                 options.gate.bias = x[2];
                 return gated_attention(x[0], x[1], Tensor::zeros(x[1].shape()), options).expected;
               },
           .reference =
               [=](const std::vector<Doubles>& x) {
                 Doubles p;
                 for (std::int64_t b = 0; b < c.B; ++b)
                   for (std::int64_t h = 0; h < c.H; ++h) {
                     double total = 0.0;
                     for (std::int64_t i = 0; i < c.T; ++i)
                       for (std::int64_t j = 0; j <= i; ++j) {
                         double dot = 0.0;
                         for (std::int64_t d = 0; d < c.D; ++d)
                           dot +=
                               x[0][static_cast<std::size_t>(((b * c.T + i) * c.H + h) * c.D + d)] *
                               x[1][static_cast<std::size_t>(
                                   ((b * c.T + j) * c.G + h / (c.H / c.G)) * c.D + d)];
                         const double g = dot / std::sqrt(static_cast<double>(c.D)) +
                                          x[2][static_cast<std::size_t>(per_head ? h : 0)];
                         total += 1.0 / (1.0 + std::exp(-g));
                       }
                     p.push_back(total / (static_cast<double>(c.T * (c.T + 1)) / 2.0));
                   }
                 return p;
               },
           .gradient_tolerance = 5e-5});
}

// The fused kernel against scores, softmax, gate and mix as separate operations, values and all
// gradients, both with sampled and with deterministic gates.
TEST(GatedAttention, EqualsItsPartsForwardAndBackward) {
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available())
    for (const auto& [sample, mask] : {std::pair{false, ScoreMask{}},
                                       {true, ScoreMask{}},
                                       {true, ScoreMask{9, 0.0f}},
                                       {false, ScoreMask{5, 1.5f}},
                                       {true, ScoreMask{0, 0.0f, true}},
                                       {false, ScoreMask{0, 1.5f, true}}})
      for (const Case& c : {Case{2, 13, 4, 2, 8}, Case{1, 70, 2, 2, 16}, Case{1, 130, 1, 1, 4}}) {
        set_simd_level(level);
        const std::vector<Tensor> in = inputs(c);
        const Tensor seed = random_tensor({c.B, c.T, c.H, c.D}, 9);
        const GateNoise noise{42, 7, 3, 0};
        std::vector<Tensor> gradients[2];
        Tensor values[2];
        for (const bool fused : {false, true}) {
          std::vector<Variable> x;
          for (const Tensor& tensor : in) x.emplace_back(tensor, true);
          const Variable bias(random_tensor({c.H}, 5, -0.5, 0.5), true);
          const GateOptions gate{bias, sample, noise, Tensor()};
          Tape tape;
          Variable z;
          if (fused) {
            GatedAttentionOptions options;
            options.gate = gate;
            options.score_mask = mask;
            z = gated_attention(x[0], x[1], x[2], options).z;
          } else {
            const Variable scores = attention_scores(x[0], x[1], 0.0f, mask);
            z = attention_mix(mul(softmax(scores), gate_mask(scores, gate)), x[2]);
          }
          values[fused] = z.value();
          tape.backward(z, seed);
          for (const Variable& variable : {x[0], x[1], x[2], bias})
            gradients[fused].push_back(variable.grad());
        }
        EXPECT_LT(relative_error(values[1].values(), to_doubles(values[0])), 1e-5);
        for (std::size_t i = 0; i < 4; ++i)
          EXPECT_LT(relative_error(gradients[1][i].values(), to_doubles(gradients[0][i])), 5e-5)
              << "gradient " << i << " sample " << sample << " T " << c.T << " " << name_of(level);
      }
}

// Every edge that mask and window leave counts, and no other.
TEST(GatedAttention, SharesAreOfTheEdgesInsideTheWindow) {
  const Case c{2, 40, 2, 1, 8};
  const std::vector<Tensor> in = inputs(c);
  for (const std::int64_t window : {1, 7, 39, 40}) {
    GatedAttentionOptions options;
    options.score_mask.window = window;
    options.gate.bias = Tensor::full({1}, 1e6f);
    const GatedAttention open = gated_attention(in[0], in[1], in[2], options);
    for (const float share : open.active.values()) EXPECT_EQ(share, 1.0f) << window;
    for (const float share : open.expected.value().values()) EXPECT_EQ(share, 1.0f) << window;
    // Half of them by chance, of which the mask tells exactly how many.
    Tensor mask;
    options.gate = {Tensor::zeros({1}), true, {3, 1, 0, 0}, Tensor()};
    options.mask = &mask;
    const GatedAttention some = gated_attention(in[0], in[1], in[2], options);
    double edges = 0.0, counted = 0.0;
    for (std::int64_t i = 0; i < c.T; ++i)
      for (std::int64_t j = 0; j < c.T; ++j) {
        const bool inside = j <= i && i - j < window;
        edges += inside ? 1.0 : 0.0;
        const float gate = mask.f32()[i * c.T + j];
        counted += static_cast<double>(gate);
        if (!inside) {
          EXPECT_EQ(gate, 0.0f);
        }
      }
    EXPECT_NEAR(static_cast<double>(some.active.f32()[0]), counted / edges, 1e-6) << window;
  }
}

TEST(GatedAttention, NoiseIsTheSameForEveryThreadCountLevelAndTiling) {
  const Case c{3, 150, 2, 2, 8};
  const GateNoise noise{1, 2, 3, 0};
  const Tensor one = mask_of(c, 0.0f, noise, 1);
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    for (const int threads : {1, 2, 3, 7}) {
      // The same scores up to rounding, so a gate may differ only where its logit is all but even.
      const Tensor mask = mask_of(c, 0.0f, noise, threads);
      std::int64_t different = 0;
      for (std::int64_t i = 0; i < mask.elements(); ++i) different += mask.f32()[i] != one.f32()[i];
      EXPECT_LE(different, 2) << name_of(level);
    }
  }
  // With equal scores the gates are the noise alone: they equal the definition, edge by edge.
  const Tensor zero = Tensor::zeros({c.B, c.T, c.H, c.D});
  GatedAttentionOptions options;
  Tensor mask;
  options.gate = {Tensor::full({1}, 0.4f), true, noise, Tensor()};
  options.mask = &mask;
  gated_attention(zero, zero, zero, options);
  const float E = std::exp(-0.4f);
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    const std::int64_t j = i % c.T, query = i / c.T % c.T, row = i / (c.T * c.T);
    const float u =
        gate_uniform(gate_noise_key(noise), noise.layer, static_cast<std::uint32_t>(row),
                     static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(j));
    const bool open = j <= query && u > E * (1.0f - u);
    ASSERT_EQ(mask.f32()[i], open ? 1.0f : 0.0f) << "edge " << row << " " << query << " " << j;
  }
}

TEST(GatedAttention, EveryPartOfTheAddressChangesTheNoise) {
  const Case c{1, 64, 2, 2, 8};
  const Tensor base = mask_of(c, 0.0f, {1, 2, 3, 0}, 2);
  EXPECT_TRUE(same(base, mask_of(c, 0.0f, {1, 2, 3, 0}, 2)));
  EXPECT_FALSE(same(base, mask_of(c, 0.0f, {2, 2, 3, 0}, 2)));
  EXPECT_FALSE(same(base, mask_of(c, 0.0f, {1, 3, 3, 0}, 2)));
  EXPECT_FALSE(same(base, mask_of(c, 0.0f, {1, 2, 4, 0}, 2)));
  EXPECT_FALSE(same(base, mask_of(c, 0.0f, {1, 2, 3, 1}, 2)));
}

TEST(GatedAttention, APartOfTheBatchHasTheNoiseOfTheWhole) {
  const Case c{3, 20, 2, 2, 8};
  const std::vector<Tensor> in = inputs(c);
  Tensor whole, part;
  GatedAttentionOptions options;
  options.gate = {Tensor::full({1}, 0.0f), true, {5, 6, 7, 0}, Tensor()};
  options.mask = &whole;
  gated_attention(in[0], in[1], in[2], options);
  options.mask = &part;
  options.gate.noise.first_batch = 2;
  gated_attention(in[0].rows(2, 3), in[1].rows(2, 3), in[2].rows(2, 3), options);
  EXPECT_TRUE(same(whole.rows(2, 3), part));
}

// Gates open with probability sigmoid(g): over many edges of equal logit the count is binomial.
TEST(GatedAttention, GatesOpenAsOftenAsTheyShould) {
  const std::int64_t T = 400, H = 4;
  const Tensor zero = Tensor::zeros({1, T, H, 4});
  const double edges = static_cast<double>(H) * static_cast<double>(T * (T + 1)) / 2.0;
  for (const float bias : {-4.0f, -1.0f, 0.0f, 2.0f}) {
    GatedAttentionOptions options;
    options.gate = {Tensor::full({1}, bias), true, {123, 1, 0, 0}, Tensor()};
    const GatedAttention result = gated_attention(zero, zero, zero, options);
    double open = 0.0;
    for (float active : result.active.values()) open += static_cast<double>(active) / H * edges;
    const double p = 1.0 / (1.0 + std::exp(-static_cast<double>(bias)));
    const double deviation = std::sqrt(edges * p * (1.0 - p));
    EXPECT_NEAR(open, edges * p, 4.5 * deviation) << "bias " << bias;
    for (float expected : result.expected.value().values()) EXPECT_NEAR(expected, p, 1e-6);
  }
}

TEST(GatedAttention, DeterministicGatesNeedNoNoiseAndMapsShowThem) {
  const Case c{1, 40, 2, 2, 8};
  const std::vector<Tensor> in = inputs(c);
  Tensor pattern, mask;
  GatedAttentionOptions options;
  options.gate.bias = Tensor::full({1}, -0.3f);
  options.pattern = &pattern, options.mask = &mask;
  const GatedAttention result = gated_attention(in[0], in[1], in[2], options);
  const Tensor scores = attention_scores(in[0], in[1]).value();
  const Tensor dense = softmax(scores).value();
  double open = 0.0;
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    const float e = scores.f32()[i] - 0.3f > 0.0f ? 1.0f : 0.0f;
    EXPECT_EQ(mask.f32()[i], e);
    EXPECT_NEAR(pattern.f32()[i], dense.f32()[i] * e, 1e-6);
    open += static_cast<double>(e);
  }
  EXPECT_NEAR(result.active.f32()[0] + result.active.f32()[1], open / (40 * 41 / 2), 1e-5);
}

TEST(GatedAttention, ACacheGivesTheRowsOfAFullRun) {
  const Case c{1, 30, 2, 1, 8};
  const std::vector<Tensor> in = inputs(c);
  GatedAttentionOptions options;
  options.gate.bias = Tensor::full({2}, -0.2f);
  const Tensor full = gated_attention(in[0], in[1], in[2], options).z.value();
  Tensor last_query = Tensor::empty({1, 1, 2, 8});
  std::copy_n(in[0].f32() + 29 * 16, 16, last_query.mutable_f32());
  const Tensor row = gated_attention(last_query, in[1], in[2], options).z.value();
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(row.f32()[i], full.f32()[29 * 16 + i], 2e-6);
}

TEST(GatedAttention, RefusesABiasOrNoiseOfTheWrongShape) {
  const Tensor x = Tensor::zeros({1, 4, 2, 8});
  GatedAttentionOptions options;
  EXPECT_THROW(gated_attention(x, x, x, options), Error);
  options.gate.bias = Tensor::zeros({3});
  EXPECT_THROW(gated_attention(x, x, x, options), Error);
  options.gate.bias = Tensor::zeros({2});
  options.gate.uniform = Tensor::zeros({1, 2, 4, 5});
  EXPECT_THROW(gated_attention(x, x, x, options), Error);
}

}  // namespace
}  // namespace filigree

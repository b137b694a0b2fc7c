// The blocks beyond what model_test.cpp shows through whole models.
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/ops.h"
#include "filigree/taps.h"
#include "ops/linear/linear_by_head.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(TapNames, AStarStandsForOnePart) {
  EXPECT_TRUE(tap_matches("blocks.*.attn.hook_z", "blocks.11.attn.hook_z"));
  EXPECT_TRUE(tap_matches("*", "hook_embed"));
  EXPECT_FALSE(tap_matches("*", "ln_final.hook_scale"));
  EXPECT_FALSE(tap_matches("blocks.*", "blocks.1.hook_mlp_out"));
  EXPECT_FALSE(tap_matches("blocks.1.attn.hook_z", "blocks.1.attn"));
  EXPECT_FALSE(tap_matches("blocks.1", "blocks.11"));
}

TEST(KeyValueCache, RefusesWhatDoesNotFit) {
  EXPECT_THROW(KeyValueCache(0, 1, 4, 1, 2), Error);
  KeyValueCache cache(1, 1, 4, 1, 2);
  const Tensor three = Tensor::zeros({1, 3, 1, 2}), wide = Tensor::zeros({1, 1, 1, 3});
  cache.append(0, three, three);
  cache.advance(3);
  EXPECT_THROW(cache.append(0, three, three), Error);
  EXPECT_THROW(cache.append(1, Tensor::zeros({1, 1, 1, 2}), Tensor::zeros({1, 1, 1, 2})), Error);
  EXPECT_THROW(cache.append(0, wide, wide), Error);
  EXPECT_THROW(cache.truncate(4), Error);
  cache.truncate(1);
  EXPECT_EQ(cache.length(), 1);
  cache.append(0, three, three);
}

// Grouped key heads, separate [out, in] matrices and no biases: the layer as Llama has it, apart
// from the positions. Two query heads on one key head equal two full heads with equal keys.
TEST(SelfAttention, GroupedHeadsEqualRepeatedOnes) {
  const std::int64_t width = 12, D = 3, H = 4, G = 2;
  const auto matrix = [&](std::int64_t out, std::uint64_t seed) {
    return random_tensor({out, width}, seed);
  };
  const Tensor wk = matrix(G * D, 2), wv = matrix(G * D, 3);
  const auto repeated = [&](const Tensor& w) {  // each key head twice
    Tensor wide = Tensor::empty({H * D, width});
    for (std::int64_t h = 0; h < H; ++h)
      std::copy_n(w.f32() + h / 2 * D * width, D * width, wide.mutable_f32() + h * D * width);
    return wide;
  };
  AttentionWeights grouped;
  grouped.q = {matrix(H * D, 1), Variable(), true};
  grouped.k = {wk, Variable(), true};
  grouped.v = {wv, Variable(), true};
  grouped.o = {random_tensor({width, H * D}, 4), Variable(), true};
  grouped.heads = H, grouped.key_heads = G, grouped.head_width = D;
  AttentionWeights full = grouped;
  full.k.weight = repeated(wk), full.v.weight = repeated(wv), full.key_heads = H;
  const Variable x = random_tensor({2, 9, width}, 5, -2, 2);
  const Tensor a = self_attention(x, grouped, {}).value(), b = self_attention(x, full, {}).value();
  EXPECT_LT(relative_error(a.values(), to_doubles(b)), 2e-6);

  // And with each head's result spelled out.
  Taps taps;
  taps.observe("hook_result");
  taps.bind({"hook_result"});
  const Tensor c = self_attention(x, grouped, TapScope(&taps, "")).value();
  EXPECT_LT(relative_error(c.values(), to_doubles(a)), 2e-6);

  // And with an input for each head, or key head, of its own.
  AttentionInputs split;
  split.q = repeat_for_heads(x, H);
  split.k = repeat_for_heads(x, G);
  split.v = repeat_for_heads(x, G);
  const Tensor d = self_attention(split, grouped, {}).value();
  EXPECT_LT(relative_error(d.values(), to_doubles(a)), 2e-6);
  split.k = Variable();
  split.shared = x;
  const Tensor last = self_attention(split, grouped, {}, nullptr, 0, nullptr, nullptr, 1).value();
  const Tensor wanted = slice(a, 1, 8, 9).value();
  EXPECT_LT(relative_error(last.values(), to_doubles(wanted)), 2e-6);
}

}  // namespace
}  // namespace filigree

// Analyses of weights and of sums, of families whose norms stand elsewhere than GPT-2's.
#include <gmock/gmock.h>

#include "filigree/analyze/circuit/graph.h"
#include "filigree/analyze/lens/head_matrices.h"
#include "filigree/analyze/lens/logit_attribution.h"
#include "filigree/model/family_samples.h"
#include "support/errors.h"

namespace filigree {
namespace {

using testing::HasSubstr;

// Gains before, between and behind the matrices of a head are part of them.
TEST(FamilyAnalyses, HeadMatricesHoldTheGainsOfAllNorms) {
  for (const char* family : {"gemma2", "qwen3", "olmo2", "olmo"}) {
    const auto model = sample_model(sample_config(std::string("family-") + family));
    const LayerWeights layer = model->weights().layers[1];
    const AttentionWeights& w = *layer.attention;
    const std::int64_t d = model->config().width, D = w.head_width, head = 3;
    const std::int64_t key_head = head / (w.heads / w.key_heads);
    const HeadMatrices m = all_head_matrices(*model)[static_cast<std::size_t>(w.heads + head)];
    const auto gain = [](const NormWeights& norm, std::int64_t i) {
      return norm.on() && norm.weight.defined() ? norm.gain().value().f32()[i] : 1.0f;
    };
    const bool by_head = w.q_norm.weight.defined() && w.q_norm.weight.size(0) == D;
    for (std::int64_t e = 0; e < D; ++e) {
      // Column e less its mean where the norm before it centres; the first against the second row
      // does without it.
      const auto column = [&](const LinearWeight& of, std::int64_t at, std::int64_t i) {
        return of.weight.value().f32()[at * d + i] * gain(layer.norm, i);
      };
      const float q = gain(w.q_norm, by_head ? e : head * D + e);
      const float k = gain(w.k_norm, by_head ? e : key_head * D + e);
      EXPECT_NEAR(m.q.f32()[e] - m.q.f32()[D + e],
                  q * (column(w.q, head * D + e, 0) - column(w.q, head * D + e, 1)), 1e-5)
          << family;
      EXPECT_NEAR(m.k.f32()[e] - m.k.f32()[D + e],
                  k * (column(w.k, key_head * D + e, 0) - column(w.k, key_head * D + e, 1)), 1e-5)
          << family;
      EXPECT_NEAR(m.o.f32()[e * d + 2],
                  w.o.weight.value().f32()[2 * w.heads * D + head * D + e] *
                      gain(layer.attention_post_norm, 2),
                  1e-5)
          << family;
    }
  }
}

TEST(FamilyAnalyses, WhatIsNoSumIsRefused) {
  for (const char* family : {"family-gemma2", "family-olmo2"}) {
    const auto model = sample_model(sample_config(family));
    EXPECT_THAT(error_of([&] { ComponentGraph graph(model->config()); }),
                HasSubstr("norms behind attention and MLP"));
    EXPECT_THAT(error_of([&] { attribute_logits(*model, {TaskPrompt()}, {}); }),
                HasSubstr("no sum of what its parts write"));
  }
  EXPECT_EQ(ComponentGraph(sample_config("family-mistral")).nodes().size(), 1u + 2u * (4u + 1u));
}

}  // namespace
}  // namespace filigree

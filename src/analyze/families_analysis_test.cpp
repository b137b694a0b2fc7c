// Analyses of weights and of sums, of families whose norms stand elsewhere than GPT-2's.
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/circuit/edge_runs.h"
#include "analyze/circuit/graph.h"
#include "filigree/lens.h"
#include "model/family_samples_test_support.h"

namespace filigree {
namespace {

// Gains before, between and behind the matrices of a head are part of them.
TEST(FamilyAnalyses, HeadMatricesHoldTheGainsOfAllNorms) {
  for (const char* family :
       {"gemma2", "qwen3", "olmo2", "olmo", "gemma3_text", "olmo3", "smollm3", "starcoder2"}) {
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

// A norm of queries that takes their mean off leaves no part along its own ones: scores of the
// matrices are those of queries less their mean, times the gains.
TEST(FamilyAnalyses, HeadMatricesLoseTheMeanThatNormsOfQueriesTakeOff) {
  for (const char* family : {"phi", "cohere", "stablelm"}) {
    const auto model = sample_model(sample_config(std::string("family-") + family));
    const LayerWeights layer = model->weights().layers[1];
    const AttentionWeights& w = *layer.attention;
    const std::int64_t D = w.head_width, head = 2;
    const HeadMatrices m = all_head_matrices(*model)[static_cast<std::size_t>(w.heads + head)];
    const Tensor gain = w.q_norm.gain().value();
    const std::int64_t first = w.q_norm.heads > 0 ? head * D : 0;
    for (std::int64_t i = 0; i < 5; ++i) {
      double sum = 0.0, size = 0.0;
      for (std::int64_t e = 0; e < D; ++e) {
        const double part =
            static_cast<double>(m.q.f32()[i * D + e]) / static_cast<double>(gain.f32()[first + e]);
        sum += part;
        size += std::abs(part);
      }
      EXPECT_LT(std::abs(sum), 1e-5 * size) << family;
    }
  }
}

// With the denominators of a run held, its logits before a soft cap are a sum of what parts wrote.
TEST(FamilyAnalyses, LogitsAreTheSumOfContributionsWithNormsBehindBranches) {
  std::vector<std::string> kinds = {"family-gemma2",      "family-olmo2",      "family-qwen3",
                                    "family-olmo",        "family-gemma",      "family-gptj",
                                    "family-opt",         "family-olmo3",      "family-gemma3_text",
                                    "family-phi",         "family-phi3",       "family-smollm3",
                                    "family-stablelm",    "family-starcoder2", "family-cohere",
                                    "family-gpt_bigcode", "family-olmoe"};
  for (const char* kind : kHookedKinds) kinds.push_back(std::string("hooked-") + kind);
  for (const std::string& family : kinds) {
    const auto model = sample_model(sample_config(family));
    TaskPrompt prompt;
    prompt.clean = prompt.corrupt = {3, 17, 5, 30, 8, 41};
    prompt.answers = {7};
    prompt.wrong = {12, 9};
    const LogitAttribution parts = attribute_logits(*model, {prompt}, {});
    double sum = 0, heads = 0;
    for (std::size_t p = 0; p < parts.parts.size(); ++p) {
      sum += parts.contributions[p][0];
      if (parts.parts[p].kind == PartKind::kHead) heads += std::abs(parts.contributions[p][0]);
      const bool biased = model->weights().layers[0].attention->o.bias.defined();
      const bool nothing = parts.parts[p].kind == PartKind::kRest ||
                           (parts.parts[p].kind == PartKind::kAttentionBias && !biased);
      if (nothing) {
        EXPECT_NEAR(parts.contributions[p][0], 0.0, 1e-4) << family;
      }
    }
    EXPECT_GT(heads, 1e-2) << family;
    EXPECT_NEAR(sum, parts.total[0], 1e-4 * (1 + std::abs(sum))) << family;
    const Tensor logits =
        model->forward(Tensor::from_ids({1, 6}, prompt.clean), {.last_position_only = true})
            .value();
    const double cap = static_cast<double>(model->config().logit_soft_cap);
    const auto uncapped = [&](TokenId id) {
      const auto logit = static_cast<double>(logits.f32()[id]);
      return cap > 0.0 ? cap * std::atanh(logit / cap) : logit;
    };
    const double expected = uncapped(7) - 0.5 * (uncapped(12) + uncapped(9));
    EXPECT_NEAR(parts.total[0], expected, 2e-3 * (1 + std::abs(expected))) << family;
  }
}

// Every edge patched with the corrupt run's value is the corrupt run, and none of them the clean
// one, also where layers have no MLP, streams no norm, and attention no direction.
TEST(FamilyAnalyses, AllEdgesOfToyModelsPatchedAreTheCorruptRun) {
  for (const char* kind : {"attn_only", "no_norm", "bidirectional", "solu"}) {
    const auto model = sample_model(sample_config(std::string("hooked-") + kind));
    TaskPrompt prompt;
    prompt.clean = {3, 17, 5, 30, 8, 41};
    prompt.corrupt = {3, 17, 5, 22, 8, 41};
    prompt.answers = {7};
    prompt.wrong = {12};
    const ComponentGraph graph(model->config());
    EXPECT_EQ(graph.has_mlps(), std::string(kind) != "attn_only");
    std::vector<std::int64_t> all(static_cast<std::size_t>(graph.edges()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const auto metric = [&](const std::vector<TokenId>& ids) {
      const Tensor logits =
          model->forward(Tensor::from_ids({1, 6}, ids), {.last_position_only = true}).value();
      return static_cast<double>(logits.f32()[7]) - static_cast<double>(logits.f32()[12]);
    };
    const std::vector<EdgeSet> sets = {{false, all}, {false, {}}, {true, {}}};
    const PatchedRuns runs = run_edges(*model, graph, {prompt}, sets, {});
    EXPECT_NEAR(runs.patched[0][0], metric(prompt.corrupt), 1e-3) << kind;
    EXPECT_NEAR(runs.patched[1][0], metric(prompt.clean), 1e-3) << kind;
    EXPECT_NEAR(runs.patched[2][0], metric(prompt.corrupt), 1e-3) << kind;
  }
}

// Key heads that several heads share are one input each, in graphs of all families.
TEST(FamilyAnalyses, ComponentGraphsHaveAnInputAKeyHead) {
  for (const char* family : {"mistral", "qwen3", "olmo2", "gemma2"}) {
    const ModelConfig config = sample_config(std::string("family-") + family);
    const ComponentGraph graph(config);
    EXPECT_EQ(graph.nodes().size(), 1u + 2u * (4u + 1u)) << family;
    EXPECT_EQ(graph.inputs().size(), 2u * (4u + 2u * 2u + 1u) + 1u) << family;
    EXPECT_EQ(graph.fed_by(graph.input(Branch::kKey, 1, 1)),
              (std::vector<std::int64_t>{graph.head_node(1, 2), graph.head_node(1, 3)}))
        << family;
    EXPECT_EQ(graph.inputs_of(graph.head_node(1, 3)),
              (std::vector<std::int64_t>{graph.input(Branch::kQuery, 1, 3),
                                         graph.input(Branch::kKey, 1, 1),
                                         graph.input(Branch::kValue, 1, 1)}))
        << family;
  }
}

}  // namespace
}  // namespace filigree

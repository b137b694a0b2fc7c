// Analyses of weights and streams for models whose norm does not centre and whose positions are
// rotary: against what the taps of a run show.
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

constexpr std::int64_t d = 24, T = 5;

class RmsModels : public testing::TestWithParam<SmallKind> {
 protected:
  RmsModels() {
    // Gains that are not 1, so that nothing hides behind them.
    std::uint64_t seed = 0;
    for (const NamedParameter& named : model_->parameters()) {
      if (named.variable.shape().rank() != 1) continue;
      Random random(++seed);
      Tensor& value = named.variable.mutable_value();
      for (std::int64_t i = 0; i < value.elements(); ++i)
        value.mutable_f32()[i] += 0.3f * static_cast<float>(random.normal());
    }
  }

  std::unique_ptr<Model> model_ = small_model(GetParam());
  const std::vector<TokenId> ids_ = {3, 17, 5, 30, 8};
  const Tensor tokens_ = Tensor::from_ids({1, T}, ids_);
};

// sum over i of a[i] b[i * stride].
double product(const float* a, const float* b, std::int64_t count, std::int64_t stride) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i * stride]);
  return sum;
}

TEST_P(RmsModels, HeadMatricesGiveWhatTheTapsShow) {
  const std::vector<HeadMatrices> heads = all_head_matrices(*model_);
  const std::int64_t H = model_->config().heads, G = model_->config().key_heads;
  const std::int64_t D = model_->config().head_width;
  Taps taps;
  for (const char* name : {"hook_resid_pre", "ln1.hook_scale", "attn.hook_q", "attn.hook_k",
                           "attn.hook_v", "attn.hook_z", "attn.hook_result"})
    taps.observe(fmt::format("blocks.1.{}", name));
  model_->forward(tokens_, {.taps = &taps});
  const auto tap = [&](const char* name) { return taps.value(fmt::format("blocks.1.{}", name)); };
  const Tensor stream = tap("hook_resid_pre"), scale = tap("ln1.hook_scale");
  for (std::int64_t h = 0; h < H; ++h) {
    const HeadMatrices& head = heads[static_cast<std::size_t>(H + h)];
    const std::int64_t g = h / (H / G);
    for (std::int64_t t = 0; t < T; ++t) {
      const auto read = [&](const Tensor& matrix, std::int64_t i) {
        return product(stream.f32() + t * d, matrix.f32() + i, d, D) /
               static_cast<double>(scale.f32()[t]);
      };
      for (std::int64_t i = 0; i < D; ++i) {
        EXPECT_NEAR(read(head.q, i), tap("attn.hook_q").f32()[(t * H + h) * D + i], 1e-4);
        EXPECT_NEAR(read(head.k, i), tap("attn.hook_k").f32()[(t * G + g) * D + i], 1e-4);
        EXPECT_NEAR(read(head.v, i), tap("attn.hook_v").f32()[(t * G + g) * D + i], 1e-4);
      }
      const Tensor z = tap("attn.hook_z");
      for (std::int64_t i = 0; i < d; ++i)
        EXPECT_NEAR(product(z.f32() + (t * H + h) * D, head.o.f32() + i, D, d),
                    tap("attn.hook_result").f32()[(t * H + h) * d + i], 1e-4);
    }
  }
}

TEST_P(RmsModels, FoldedUnembeddingGivesTheLogitsOfTheStream) {
  const Tensor folded = folded_unembedding(*model_);
  Taps taps;
  taps.observe("blocks.2.hook_resid_post");
  taps.observe("ln_final.hook_scale");
  const Tensor logits = model_->forward(tokens_, {.taps = &taps}).value();
  const Tensor stream = taps.value("blocks.2.hook_resid_post");
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t v = 0; v < kTestVocabulary; ++v)
      EXPECT_NEAR(product(stream.f32() + t * d, folded.f32() + v * d, d, 1) /
                      static_cast<double>(taps.value("ln_final.hook_scale").f32()[t]),
                  logits.f32()[t * kTestVocabulary + v], 1e-4);
}

TEST_P(RmsModels, NormalisedEmbeddingsKeepTheirMeans) {
  const TokenInputs inputs(*model_, TokenInput::kEmbedding);
  const Tensor rows = normalised(*model_, inputs.of_layer(0));
  const Tensor& embedding = model_->weights().token_embedding.value();
  for (std::int64_t v = 0; v < kTestVocabulary; ++v) {
    const float *row = rows.f32() + v * d, *raw = embedding.f32() + v * d;
    EXPECT_NEAR(product(row, row, d, 1), static_cast<double>(d), 1e-2);
    const double size = std::sqrt(product(raw, raw, d, 1) / static_cast<double>(d));
    EXPECT_NEAR(row[7], static_cast<double>(raw[7]) / size, 1e-3);
  }
}

TEST_P(RmsModels, TheLensEndsWithTheModelsOwnLogits) {
  LensOptions options;
  options.token = 12;
  const LogitLens lens = logit_lens(*model_, ids_, options);
  const Tensor logits = model_->forward(tokens_).value();
  for (std::int64_t t = 0; t < T; ++t) {
    const float* row = logits.f32() + t * kTestVocabulary;
    double sum = 0.0;
    for (std::int64_t v = 0; v < kTestVocabulary; ++v) sum += std::exp(static_cast<double>(row[v]));
    EXPECT_NEAR(lens.at(lens.points.size() - 1, t).log_probability,
                static_cast<double>(row[12]) - std::log(sum), 1e-4);
  }
  options.middle = true;
  if (GetParam() == SmallKind::kParallel) {
    EXPECT_THROW(logit_lens(*model_, ids_, options), Error);
  } else {
    EXPECT_EQ(logit_lens(*model_, ids_, options).points.size(), 7u);
  }
}

TEST_P(RmsModels, AttributionsSumToTheLogitDifference) {
  const auto prompts = small_prompts({7, 5, 9});
  const LogitAttribution result = attribute_logits(*model_, prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    double sum = 0, magnitude = 0;
    for (std::size_t p = 0; p < result.parts.size(); ++p) {
      EXPECT_NE(result.parts[p].kind, PartKind::kPositions);
      const double value = result.contributions[p][i];
      sum += value, magnitude += std::abs(value);
      // No biases, and nothing that no tap names.
      const PartKind kind = result.parts[p].kind;
      if (kind == PartKind::kRest || kind == PartKind::kAttentionBias ||
          kind == PartKind::kOutputBias) {
        EXPECT_NEAR(value, 0.0, 1e-4);
      }
    }
    EXPECT_NEAR(sum, result.total[i], 1e-6 * magnitude + 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RmsModels,
                         testing::Values(SmallKind::kLlama, SmallKind::kParallel),
                         [](const auto& parameter) { return text_of(parameter.param); });

}  // namespace
}  // namespace filigree

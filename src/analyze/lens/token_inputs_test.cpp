// What heads read for a token, against the taps of runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

class TokenInputsOf : public testing::TestWithParam<SmallKind> {
 protected:
  // Taps of a run on one token, where attention of layer 0 and learnt positions add nothing.
  Tensor stream_of(TokenId token, const std::string& tap) {
    Taps taps;
    const auto nothing = [](const Variable& value) {
      return Variable(Tensor::zeros(value.shape()));
    };
    taps.intervene("blocks.0.hook_attn_out", nothing);
    if (GetParam() == SmallKind::kDense || GetParam() == SmallKind::kGated)
      taps.intervene("hook_pos_embed", nothing);
    taps.observe(tap);
    model_->forward(Tensor::from_ids({1, 1}, std::vector<TokenId>{token}), {.taps = &taps});
    return taps.value(tap);
  }

  std::unique_ptr<Model> model_ = small_model(GetParam());
  const std::int64_t d = model_->config().width;
};

TEST_P(TokenInputsOf, TheFirstMlpIsTheStreamBehindLayerZeroWithoutAttention) {
  const TokenInputs inputs(*model_, TokenInput::kFirstMlp);
  for (const TokenId token : {3, 17, 30}) {
    const Tensor before = stream_of(token, "blocks.0.hook_resid_pre"),
                 behind = stream_of(token, "blocks.0.hook_resid_post");
    for (std::int64_t i = 0; i < d; ++i) {
      EXPECT_NEAR(inputs.of_layer(0).stream.f32()[token * d + i], before.f32()[i], 1e-5);
      for (const std::int64_t layer : {1, 2})
        EXPECT_NEAR(inputs.of_layer(layer).stream.f32()[token * d + i], behind.f32()[i], 1e-4);
    }
  }
  // Of some tokens the same rows.
  const TokenInputs some(*model_, TokenInput::kFirstMlp, {30, 3, 3});
  const TokenRows& rows = some.of_layer(2);
  EXPECT_EQ(rows.tokens, (std::vector<TokenId>{3, 30}));
  EXPECT_EQ(rows.row_of(30), 1);
  EXPECT_EQ(rows.row_of(17), -1);
  for (std::int64_t i = 0; i < d; ++i)
    EXPECT_NEAR(rows.stream.f32()[d + i], inputs.of_layer(2).stream.f32()[30 * d + i], 1e-6);
}

TEST_P(TokenInputsOf, TextAreMeansOfWhatTheLayerReads) {
  // The second text is longer than the context of 32.
  std::vector<std::vector<TokenId>> texts = {{3, 17, 3, 8}, {}};
  for (TokenId t = 0; t < 40; ++t) texts[1].push_back(t % 5);
  const std::int64_t layers[] = {2, 1};
  std::int64_t done = 0;
  const TokenInputs inputs =
      TokenInputs::of_texts(*model_, texts, layers, [&](std::int64_t tokens) { done = tokens; });
  EXPECT_EQ(done, 44);
  EXPECT_EQ(inputs.of_layer(1).tokens, (std::vector<TokenId>{0, 1, 2, 3, 4, 8, 17}));
  EXPECT_THAT(error_of([&] { inputs.of_layer(0); }), HasSubstr("layer 0 was not asked for"));
  for (const std::int64_t layer : layers) {
    std::vector<double> sum(static_cast<std::size_t>(d), 0.0);
    int times = 0;
    for (const std::vector<TokenId>& ids :
         {texts[0], std::vector<TokenId>(texts[1].begin(), texts[1].begin() + 32),
          std::vector<TokenId>(texts[1].begin() + 32, texts[1].end())}) {
      Taps taps;
      taps.observe(fmt::format("blocks.{}.hook_resid_pre", layer));
      const auto T = static_cast<std::int64_t>(ids.size());
      model_->forward(Tensor::from_ids({1, T}, ids), {.taps = &taps});
      const Tensor stream = taps.value(fmt::format("blocks.{}.hook_resid_pre", layer));
      for (std::int64_t t = 0; t < T; ++t) {
        if (ids[static_cast<std::size_t>(t)] != 3) continue;
        ++times;
        const float* row = stream.f32() + t * d;
        double mean = 0, square = 0;
        const bool centres = model_->weights().final_norm.centres();
        for (std::int64_t i = 0; centres && i < d; ++i) mean += row[i] / static_cast<double>(d);
        for (std::int64_t i = 0; i < d; ++i)
          square += (row[i] - mean) * (row[i] - mean) / static_cast<double>(d);
        const double epsilon = static_cast<double>(model_->weights().final_norm.epsilon);
        for (std::int64_t i = 0; i < d; ++i)
          sum[static_cast<std::size_t>(i)] += (row[i] - mean) / std::sqrt(square + epsilon);
      }
    }
    const TokenRows& rows = inputs.of_layer(layer);
    const Tensor read = normalised(*model_, rows);
    for (std::int64_t i = 0; i < d; ++i)
      EXPECT_NEAR(read.f32()[rows.row_of(3) * d + i], sum[static_cast<std::size_t>(i)] / times,
                  1e-4);
  }
}

TEST_P(TokenInputsOf, RefuseWhatIsNotThere) {
  EXPECT_THAT(error_of([&] { TokenInputs(*model_, TokenInput::kText); }),
              HasSubstr("means over text need a text"));
  EXPECT_THAT(error_of([&] { TokenInputs(*model_, TokenInput::kEmbedding, {99999}); }),
              HasSubstr("token 99999 is outside"));
  const std::int64_t layer[] = {3};
  const std::vector<TokenId> text[] = {{1}};
  EXPECT_THAT(error_of([&] { TokenInputs::of_texts(*model_, text, layer); }),
              HasSubstr("no layer 3"));
  EXPECT_THAT(error_of([&] { TokenInputs::of_texts(*model_, {}, layer); }),
              HasSubstr("the text is empty"));
}

INSTANTIATE_TEST_SUITE_P(All, TokenInputsOf,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kOlmo2, SmallKind::kGemma2,
                                         SmallKind::kParallel),
                         [](const auto& one) { return text_of(one.param); });

}  // namespace
}  // namespace filigree

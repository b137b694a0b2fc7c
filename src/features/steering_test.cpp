#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/features.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/golden_transcoder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

TEST(SteeringChanges, AreReadAsTheyAreWritten) {
  const auto changes = parse_steering("L5F123=8,L5F123=+8,L0F1+=-2,L2F3*=-2.5,L2F3@-1=-4");
  ASSERT_EQ(changes.size(), 5u);
  EXPECT_EQ(changes[0], (SteeringChange{{5, 123}, SteeringKind::kSet, 8, {}}));
  EXPECT_EQ(changes[1], (SteeringChange{{5, 123}, SteeringKind::kAdd, 8, {}}));
  EXPECT_EQ(changes[2], (SteeringChange{{0, 1}, SteeringKind::kAdd, -2, {}}));
  EXPECT_EQ(changes[3], (SteeringChange{{2, 3}, SteeringKind::kMultiply, -2.5, {}}));
  EXPECT_EQ(changes[4], (SteeringChange{{2, 3}, SteeringKind::kSet, -4, -1}));
  EXPECT_EQ(text_of(changes), "L5F123 = 8, L5F123 + 8, L0F1 + -2, L2F3 x -2.5, L2F3@-1 = -4");
  for (const char* text : {"", "L5F123", "=8", "L5F123=", "L5F123=x", "L5H3=1", "L5F1@=2",
                           "L5F1=1,", "L5F1=1e999", "L5F1=nan", "L5F1==1", "L5F1=++1"})
    EXPECT_THAT(error_of([&] { parse_steering(text); }), HasSubstr("L5F123=+8")) << text;
}

class SteeringTest : public ::testing::Test {
 protected:
  // MLP outputs [layers][tokens * width] and logits of a run.
  struct Run {
    std::vector<std::vector<float>> outputs;
    std::vector<float> logits;
  };
  Run run(SteeredFeatures* steering) const {
    Taps taps;
    if (steering != nullptr) steering->put_on(taps);
    taps.observe("blocks.*.hook_mlp_out");
    const Variable logits = model_->forward(ids_, {.taps = &taps});
    Run run;
    for (std::int64_t l = 0; l < kCltLayers; ++l) {
      const Tensor& out = taps.value(fmt::format("blocks.{}.hook_mlp_out", l));
      run.outputs.emplace_back(out.values().begin(), out.values().end());
    }
    run.logits = {logits.value().values().begin(), logits.value().values().end()};
    return run;
  }
  float activation(std::int64_t layer, std::int64_t t, std::int64_t feature) const {
    return act_.f32()[(layer * tokens_ + t) * kCltFeatures + feature];
  }

  const std::unique_ptr<Model> model_ = load_model(golden_folder() / "clt" / "model");
  const Tensor act_ = golden_tensor(clt_file("activations.safetensors"), "act");
  const std::int64_t tokens_ = act_.size(1);
  const Tensor ids_ =
      golden_tensor(clt_file("activations.safetensors"), "input_ids").reshape({1, tokens_});
  const std::unique_ptr<FeatureDictionary> dictionary_ = dictionary_of(golden_transcoder());
};

TEST_F(SteeringTest, AddsTheDifferenceTimesTheDecoderRows) {
  constexpr std::int32_t kFeature = 5;
  const Run plain = run(nullptr);
  for (const std::int64_t layer : {std::int64_t{0}, kCltLayers - 1}) {
    SteeredFeatures steering(*dictionary_, {{{layer, kFeature}, SteeringKind::kSet, 3.0, {}}});
    const Run steered = run(&steering);
    const FeatureRows rows = dictionary_->rows(layer, std::span(&kFeature, 1));
    // In its own layer what it reads is as it was.
    const auto& before = plain.outputs[static_cast<std::size_t>(layer)];
    const auto& after = steered.outputs[static_cast<std::size_t>(layer)];
    for (std::int64_t t = 0; t < tokens_; ++t) {
      const float now = activation(layer, t, kFeature);
      EXPECT_NEAR(steering.activations()[0][static_cast<std::size_t>(t)], now, 1e-5);
      const float difference = t == 0 ? 0.0f : 3.0f - now;  // the first is left alone
      for (std::int64_t d = 0; d < kCltWidth; ++d)
        EXPECT_NEAR(after[static_cast<std::size_t>(t * kCltWidth + d)] -
                        before[static_cast<std::size_t>(t * kCltWidth + d)],
                    difference * rows.decoder.f32()[d], 2e-5);
    }
    EXPECT_NE(plain.logits, steered.logits);
  }
}

TEST_F(SteeringTest, WhatStaysAsItIsChangesNothing) {
  const Run plain = run(nullptr);
  SteeredFeatures steering(*dictionary_, parse_steering("L1F2=+0,L0F3*=1,L2F1@3+=0"));
  EXPECT_EQ(run(&steering).logits, plain.logits);
}

TEST_F(SteeringTest, IsAtOnePositionWhereThatIsSaid) {
  const Run plain = run(nullptr);
  SteeredFeatures steering(*dictionary_, parse_steering("L3F4@-2=6"));
  const Run steered = run(&steering);
  const auto V = static_cast<std::int64_t>(plain.logits.size()) / tokens_;
  for (std::int64_t t = 0; t < tokens_; ++t) {
    const auto begin = static_cast<std::ptrdiff_t>(t * V), end = begin + V;
    const bool same = std::equal(plain.logits.begin() + begin, plain.logits.begin() + end,
                                 steered.logits.begin() + begin);
    EXPECT_EQ(same, t != tokens_ - 2) << t;
  }
}

// A text that grows token by token in a cache gives what a run of the whole gives.
TEST_F(SteeringTest, CachedPassesAreTheSame) {
  SteeredFeatures whole(*dictionary_, parse_steering("L0F4=+5,L2F7=2"));
  const Run wanted = run(&whole);
  SteeredFeatures steering(*dictionary_, parse_steering("L0F4=+5,L2F7=2"));
  Taps taps;
  steering.put_on(taps);
  const auto cache = model_->make_cache(1, tokens_);
  const auto V = static_cast<std::int64_t>(wanted.logits.size()) / tokens_;
  for (std::int64_t t = 0; t < tokens_;) {
    const std::int64_t count = t == 0 ? 4 : 1;
    steering.set_pass(t, 4);
    const Tensor next = ids_.reshape({tokens_, 1}).rows(t, t + count).reshape({1, count});
    const Variable logits =
        model_->forward(next, {.taps = &taps, .cache = cache.get(), .last_position_only = true});
    t += count;
    for (std::int64_t v = 0; v < V; ++v)
      EXPECT_NEAR(logits.value().f32()[v], wanted.logits[static_cast<std::size_t>((t - 1) * V + v)],
                  2e-4);
  }
}

TEST_F(SteeringTest, RefusesFeaturesThatAreNotThere) {
  EXPECT_THAT(error_of([&] { SteeredFeatures(*dictionary_, parse_steering("L4F0=1")); }),
              HasSubstr("no feature L4F0; the transcoder has 4 layers of 24"));
  EXPECT_THAT(error_of([&] { SteeredFeatures(*dictionary_, parse_steering("L0F24=1")); }),
              HasSubstr("no feature L0F24"));
}

TEST_F(SteeringTest, ProductsAreThoseOfTheRows) {
  const Tensor x = random_tensor({kCltWidth}, 3);
  std::vector<std::int32_t> all(kCltFeatures);
  for (std::int32_t f = 0; f < kCltFeatures; ++f) all[static_cast<std::size_t>(f)] = f;
  const FeatureRows rows = dictionary_->rows(1, all);
  const Tensor encoder = dictionary_->encoder_products(1, x),
               decoder = dictionary_->decoder_products(1, x, 2);
  for (std::int64_t f = 0; f < kCltFeatures; ++f) {
    double e = 0, d = 0;
    for (std::int64_t i = 0; i < kCltWidth; ++i) {
      e += rows.encoder.f32()[f * kCltWidth + i] * x.f32()[i];
      for (std::int64_t j = 0; j < 2; ++j)
        d += rows.decoder.f32()[(f * 3 + j) * kCltWidth + i] * x.f32()[i];
    }
    EXPECT_NEAR(encoder.f32()[f], e, 1e-5);
    EXPECT_NEAR(decoder.f32()[f], d, 1e-5);
  }
}

}  // namespace
}  // namespace filigree

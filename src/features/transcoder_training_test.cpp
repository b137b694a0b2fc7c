// Transcoders trained on the activations of a small model: what the loop is given and what comes
// out, on one process and several, interrupted and not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/evaluation.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/random.h"
#include "filigree/train.h"
#include "support/models.h"
#include "support/temporary_folder.h"
#include "support/thread_ranks.h"

namespace filigree {
namespace {

constexpr std::int64_t kVocabulary = 50;

std::unique_ptr<Model> small_model() {
  auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                              {"n_layer", 2},
                                              {"n_head", 2},
                                              {"n_embd", 16},
                                              {"n_positions", 16},
                                              {"vocab_size", kVocabulary}},
                                             "test"),
                          1);
  enlarge_weights(*model, 8.0f);
  return model;
}

TokenSplit random_tokens(const std::filesystem::path& folder) {
  std::vector<TokenId> tokens;
  Random random(7);
  for (int i = 0; i < 5000; ++i) tokens.push_back(static_cast<TokenId>(random.below(kVocabulary)));
  TokenShardsWriter writer(folder, {.vocabulary = kVocabulary});
  writer.add_tokens(0, tokens);
  writer.finish();
  return TokenShards::open(folder).split("train");
}

struct Options {
  TranscoderKind kind = TranscoderKind::kCrossLayer;
  FeatureActivation activation = FeatureActivation::kBatchTopK;
  std::int64_t steps = 60;
  std::int64_t stop_after = -1;
  bool resume = false;
  bool skip = false;
  std::int64_t through_model = 0;  // steps, the last ones
  double divergence = 0.1;
};

struct Trained {
  Transcoder transcoder;  // whole, scales folded in
  TrainerResult result;
  std::vector<std::vector<float>> density;
};

Trained train_small(const Model& model, const TokenSplit& tokens,
                    const std::filesystem::path& folder, const Options& options,
                    Communicator& ranks) {
  ActivationOptions drawn{.tokens = 64, .pool = 600, .length = 16, .windows = 6, .seed = 3};
  if (options.through_model > 0) drawn.windows_from = options.steps - options.through_model;
  ActivationSource source(model, tokens, drawn, ranks);
  const TranscoderShape shape{options.kind, 2, 16, 48, options.skip};
  Transcoder transcoder(shape, options.activation,
                        features_of_rank(48, ranks.rank(), ranks.size()));
  initialise(transcoder, source.peek(), {.seed = 5, .rate = 0.2});
  TranscoderTrainable trained(transcoder, {{"weights_seed", std::uint64_t{5}}});
  TranscoderObjective objective(trained,
                                {.l0 = 6.0,
                                 .steps = options.steps,
                                 .first_l0 = 2.0,
                                 .dead_after = 1000,
                                 .divergence = options.divergence},
                                {options.through_model > 0 ? &model : nullptr, {}});
  trained.set_requires_grad(true);
  AdamW optimizer(decay_groups(trained, 0.0f), {.beta2 = 0.999f});
  RunFolder run(folder);
  TrainerOptions trainer;
  trainer.schedule = {5e-3f, 2, options.steps, 0.1f};
  trainer.checkpoint_every = 20;
  trainer.resume = options.resume;
  trainer.ranks = &ranks;
  TrainerCallbacks callbacks;
  std::int64_t done = 0;
  callbacks.progress = [&](std::int64_t step, const Metrics&) { done = step; };
  callbacks.stop_requested = [&] { return done == options.stop_after; };
  TrainerResult result = train(trained, objective, source, optimizer, run, trainer, callbacks);
  Transcoder whole = gathered(transcoder, ranks);
  fold_scales(whole, source.scales());
  return {std::move(whole), std::move(result), trained.density()};
}

Trained train_alone(const Model& model, const TokenSplit& tokens,
                    const std::filesystem::path& folder, const Options& options) {
  return train_small(model, tokens, folder, options, *make_single_process());
}

std::uint64_t checksum_of(const Transcoder& transcoder) {
  return parameters_checksum(transcoder.shared_parameters(),
                             parameters_checksum(transcoder.feature_parameters()));
}

class TranscoderTraining : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::unique_ptr<Model> model_ = small_model();
  const TokenSplit tokens_ = random_tokens(folder_ / "shards");
};

TEST_F(TranscoderTraining, ActivationsAreTheModelsInAnotherOrder) {
  const auto alone = make_single_process();
  const ActivationOptions options{.tokens = 45, .pool = 90, .length = 16, .windows = 3, .seed = 1};
  ActivationSource source(*model_, tokens_, options, *alone);
  // A pool of 90 tokens is two passes of three windows of 15.
  EXPECT_EQ(source.batches_of_a_pool(), 2);
  ShardLoader loader(tokens_, {.batch = 3, .length = 16, .seed = 1});
  std::vector<double> wanted, found;
  for (int pass = 0; pass < 2; ++pass) {
    Taps taps;
    taps.observe("blocks.1.hook_mlp_out");
    model_->forward(loader.next().ids, {.taps = &taps});
    const Tensor& y = taps.value("blocks.1.hook_mlp_out");
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t t = 1; t < 16; ++t) wanted.push_back(y.f32()[(b * 16 + t) * 16]);
  }
  const float scale = source.scales().output[1];
  double norm = 0.0;
  for (int b = 0; b < 2; ++b) {
    const ActivationBatch batch = source.next();
    for (std::int64_t t = 0; t < 45; ++t) {
      found.push_back(batch.targets.f32()[(45 + t) * 16] / scale);
      double square = 0.0;
      for (std::int64_t i = 0; i < 16; ++i)
        square += std::pow(batch.targets.f32()[(45 + t) * 16 + i], 2);
      norm += std::sqrt(square) / 90.0;
    }
  }
  EXPECT_NEAR(norm, 4.0, 0.01);  // the root of the width
  EXPECT_NE(wanted, found);
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(wanted[i], found[i], 0.004 * std::abs(wanted[i]) + 1e-6);  // bf16
}

TEST_F(TranscoderTraining, AResumedSourceGoesOnAlike) {
  const auto alone = make_single_process();
  const ActivationOptions options{.tokens = 45, .pool = 90, .length = 16, .windows = 3, .seed = 1};
  ActivationSource source(*model_, tokens_, options, *alone);
  for (int taken = 0; taken < 5; ++taken) {
    ActivationSource other(*model_, tokens_, options, *alone);
    source.scales();
    other.restore(source.state());
    const Tensor a = source.next().inputs, b = other.next().inputs;
    EXPECT_TRUE(std::equal(a.values().begin(), a.values().end(), b.values().begin())) << taken;
  }
}

TEST_F(TranscoderTraining, LearnsAndIsAsSparseAsWanted) {
  for (const FeatureActivation activation :
       {FeatureActivation::kTopK, FeatureActivation::kBatchTopK, FeatureActivation::kJumpRelu,
        FeatureActivation::kRelu}) {
    const bool chooses =
        activation == FeatureActivation::kTopK || activation == FeatureActivation::kBatchTopK;
    const std::string name(name_of(activation));
    const Trained trained = train_alone(*model_, tokens_, folder_ / name,
                                        {.activation = activation, .steps = chooses ? 200 : 600});
    EXPECT_LT(metric(trained.result.last, "nmse"), 0.6) << name;
    // Of top-k some may be below zero, and do not count.
    const double tolerance = activation == FeatureActivation::kBatchTopK ? 0.2 : 1.5;
    EXPECT_NEAR(metric(trained.result.last, "l0"), 6.0, tolerance) << name;
  }
}

TEST_F(TranscoderTraining, AnInterruptedRunEndsWithTheSameBits) {
  for (const FeatureActivation activation :
       {FeatureActivation::kBatchTopK, FeatureActivation::kJumpRelu}) {
    const std::string name(name_of(activation));
    const Options options{.activation = activation};
    const Trained whole = train_alone(*model_, tokens_, folder_ / (name + "-whole"), options);
    Options part = options;
    part.stop_after = 33;
    train_alone(*model_, tokens_, folder_ / (name + "-parts"), part);
    part.stop_after = -1;
    part.resume = true;
    const Trained resumed = train_alone(*model_, tokens_, folder_ / (name + "-parts"), part);
    EXPECT_EQ(resumed.result.resumed_from, 33);
    EXPECT_EQ(checksum_of(whole.transcoder), checksum_of(resumed.transcoder)) << name;
    EXPECT_EQ(whole.density, resumed.density);
  }
}

// Stopped before the steps through the model and among them.
TEST_F(TranscoderTraining, AnInterruptedRunThroughTheModelEndsWithTheSameBits) {
  const Options options{.steps = 40, .through_model = 20};
  const Trained whole = train_alone(*model_, tokens_, folder_ / "whole", options);
  Options part = options;
  for (const std::int64_t stop : {15, 27}) {
    part.stop_after = stop;
    train_alone(*model_, tokens_, folder_ / "parts", part);
    part.resume = true;
  }
  part.stop_after = -1;
  const Trained resumed = train_alone(*model_, tokens_, folder_ / "parts", part);
  EXPECT_EQ(resumed.result.resumed_from, 27);
  EXPECT_EQ(checksum_of(whole.transcoder), checksum_of(resumed.transcoder));
  EXPECT_EQ(whole.density, resumed.density);
}

// As many steps with and without: predictions come nearer to the model's, and as few features are
// active.
TEST_F(TranscoderTraining, ThroughTheModelPredictionsComeNearer) {
  model_->set_gate({{1.0f}});
  const auto measured = [&](Trained trained) {
    const auto dictionary = dictionary_of(std::move(trained.transcoder), {}, 6);
    return measure_features(
        *model_, *dictionary,
        [&] {
          return shard_windows(tokens_, {.length = 16, .max_tokens = 2000}, model_->config());
        },
        false);
  };
  Options options{.activation = FeatureActivation::kTopK, .steps = 200};
  const FeatureQuality plain = measured(train_alone(*model_, tokens_, folder_ / "plain", options));
  options.through_model = 150;
  options.divergence = 100.0;  // predictions of random weights differ little
  Trained through = train_alone(*model_, tokens_, folder_ / "through", options);
  EXPECT_GT(metric(through.result.last, "kl"), 0.0);
  EXPECT_NEAR(metric(through.result.last, "l0"), 6.0, 0.5);
  const FeatureQuality quality = measured(std::move(through));
  EXPECT_LT(quality.all.kl, 0.85 * plain.all.kl);
  EXPECT_NEAR(quality.l0(), plain.l0(), 0.5);
  EXPECT_LT(quality.nmse(), 1.6 * plain.nmse());
}

TEST_F(TranscoderTraining, SeveralProcessesTrainTheSame) {
  const Options options{
      .kind = TranscoderKind::kPerLayer, .steps = 20, .skip = true, .through_model = 5};
  const Trained alone = train_alone(*model_, tokens_, folder_ / "alone", options);
  run_ranks(2, [&](Communicator& ranks) {
    const Trained shared = train_small(*model_, tokens_, folder_ / "shared", options, ranks);
    EXPECT_NEAR(metric(shared.result.last, "nmse"), metric(alone.result.last, "nmse"), 1e-3);
    const Tensor a = alone.transcoder.layers()[1].decoder.value(),
                 b = shared.transcoder.layers()[1].decoder.value();
    for (std::int64_t i = 0; i < a.elements(); ++i) ASSERT_NEAR(a.f32()[i], b.f32()[i], 1e-2);
  });
}

// Without a second try features that are never active stay so.
TEST_F(TranscoderTraining, DeadFeaturesComeBack) {
  const auto dead_after_training = [&](double auxiliary) {
    const auto ranks = make_single_process();
    ActivationSource source(*model_, tokens_,
                            {.tokens = 64, .pool = 600, .length = 16, .windows = 6, .seed = 3},
                            *ranks);
    Transcoder transcoder({TranscoderKind::kCrossLayer, 2, 16, 48, false},
                          FeatureActivation::kBatchTopK, {0, 48});
    initialise(transcoder, source.peek(), {.seed = 5, .rate = 0.2});
    for (int f = 0; f < 24; ++f)  // out of reach
      transcoder.layers()[0].encoder_bias.mutable_value().mutable_f32()[f] -= 8.0f;
    TranscoderTrainable trained(transcoder, {});
    TranscoderObjective objective(
        trained, {.l0 = 6.0, .steps = 300, .auxiliary = auxiliary, .dead_after = 500});
    trained.set_requires_grad(true);
    AdamW optimizer(decay_groups(trained, 0.0f), {.beta2 = 0.999f});
    RunFolder run(folder_ / fmt::format("auxiliary-{}", auxiliary));
    TrainerOptions trainer;
    trainer.schedule = {5e-3f, 2, 300, 0.1f};
    return metric(train(trained, objective, source, optimizer, run, trainer).last, "dead");
  };
  const double without = dead_after_training(0.0), with = dead_after_training(1.0 / 32.0);
  EXPECT_GT(without, 0.24);  // 24 of 96
  EXPECT_LT(with, 0.5 * without);
}

TEST_F(TranscoderTraining, ThresholdsKeepTheWantedNumberActive) {
  const Trained trained = train_alone(*model_, tokens_, folder_ / "run", {.steps = 100});
  const auto ranks = make_single_process();
  ActivationSource source(
      *model_, tokens_, {.tokens = 64, .pool = 600, .length = 16, .windows = 6, .seed = 9}, *ranks);
  // Scales are folded in, so the source's own must not count.
  nlohmann::json state = (source.scales(), source.state());
  state["input_scales"] = state["output_scales"] = std::vector<float>(2, 1.0f);
  source.restore(state);
  const std::vector<float> thresholds =
      calibrated_thresholds(trained.transcoder, source, 6, 8, *ranks);
  Transcoder stored(trained.transcoder.shape(), FeatureActivation::kJumpRelu, {0, 48});
  for (std::size_t l = 0; l < 2; ++l) {
    stored.layers()[l] = trained.transcoder.layers()[l];
    stored.layers()[l].log_threshold = Variable(Tensor::full({48}, std::log(thresholds[l])));
  }
  stored.decoder_bias().mutable_value() = trained.transcoder.decoder_bias().value();
  const auto dictionary = dictionary_of(std::move(stored));
  const FeatureQuality quality = measure_features(
      *model_, *dictionary,
      [&] { return shard_windows(tokens_, {.length = 16, .max_tokens = 2000}, model_->config()); },
      true);
  EXPECT_NEAR(quality.l0(), 6.0, 0.5);
  EXPECT_LT(quality.nmse(), 0.6);
  EXPECT_GT(quality.recovered(), 0.2);
  EXPECT_LT(quality.all.loss, quality.all.ablated_loss);
}

TEST_F(TranscoderTraining, OptionsThatMakeNoSense) {
  const auto alone = make_single_process();
  EXPECT_THROW(ActivationSource(*model_, tokens_, {.tokens = 64, .pool = 10}, *alone), Error);
  EXPECT_THROW(ActivationSource(*model_, tokens_, {.length = 1}, *alone), Error);
  Transcoder transcoder({TranscoderKind::kCrossLayer, 2, 16, 48, false}, FeatureActivation::kTopK,
                        {0, 48});
  TranscoderTrainable trained(transcoder, {});
  EXPECT_THROW(TranscoderObjective(trained, {.l0 = 49.0}), Error);
  EXPECT_THROW(TranscoderObjective(trained, {.l0 = 15.5}), Error);
  ActivationSource source(*model_, tokens_, {.tokens = 64, .pool = 600, .length = 16, .windows = 6},
                          *alone);
  EXPECT_THROW(source.restore({{"epoch", 0u}}), Error);
}

}  // namespace
}  // namespace filigree

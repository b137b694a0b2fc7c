// Transcoders trained on a GPU: that they learn, and that an interrupted run ends with the same
// bits.
#include <gtest/gtest.h>

#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/random.h"
#include "filigree/train.h"
#include "support/check_cuda.h"
#include "support/models.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

struct Outcome {
  std::uint64_t weights = 0;
  std::vector<std::vector<float>> density;
  Metrics last;
};

class TranscoderOnGpu : public ::testing::Test {
 protected:
  TokenSplit tokens() const {
    std::vector<TokenId> tokens;
    Random random(7);
    for (int i = 0; i < 5000; ++i) tokens.push_back(static_cast<TokenId>(random.below(50)));
    TokenShardsWriter writer(folder_ / "shards", {.vocabulary = 50});
    writer.add_tokens(0, tokens);
    writer.finish();
    return TokenShards::open(folder_ / "shards").split("train");
  }

  Outcome train_to(const std::string& name, FeatureActivation activation,
                   const Placement& placement, std::int64_t stop_after,
                   const TokenSplit& split) const {
    const auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                                      {"n_layer", 2},
                                                      {"n_head", 2},
                                                      {"n_embd", 16},
                                                      {"n_positions", 16},
                                                      {"vocab_size", 50}},
                                                     "test"),
                                  1);
    enlarge_weights(*model, 8.0f);
    model->place(placement);
    const auto ranks = make_single_process();
    ActivationSource source(
        *model, split, {.tokens = 64, .pool = 600, .length = 16, .windows = 6, .seed = 3}, *ranks);
    Transcoder transcoder({TranscoderKind::kCrossLayer, 2, 16, 48, false}, activation, {0, 48},
                          placement);
    initialise(transcoder, source.peek(), {.seed = 5, .rate = 0.2});
    TranscoderTrainable trained(transcoder, {});
    // So soon dead that some are, and get their second try.
    TranscoderObjective objective(trained,
                                  {.l0 = 6.0, .steps = 60, .first_l0 = 2.0, .dead_after = 300});
    trained.set_requires_grad(true);
    AdamW optimizer(decay_groups(trained, 0.0f), {.beta2 = 0.999f});
    RunFolder run(folder_ / name);
    TrainerOptions trainer;
    trainer.schedule = {5e-3f, 2, 60, 0.1f};
    trainer.resume = true;
    TrainerCallbacks callbacks;
    std::int64_t done = 0;
    callbacks.progress = [&](std::int64_t step, const Metrics&) { done = step; };
    callbacks.stop_requested = [&] { return done == stop_after; };
    const TrainerResult result =
        train(trained, objective, source, optimizer, run, trainer, callbacks);
    const Transcoder whole = gathered(transcoder, *ranks);
    return {parameters_checksum(whole.feature_parameters()), trained.density(), result.last};
  }

  const TemporaryFolder folder_;
};

TEST_F(TranscoderOnGpu, LearnsAsOnTheCpuAndResumesToTheSameBits) {
  FILIGREE_NEEDS_GPU();
  const TokenSplit split = tokens();
  for (const FeatureActivation activation :
       {FeatureActivation::kBatchTopK, FeatureActivation::kJumpRelu})
    for (const DType precision : {DType::kF32, DType::kBf16}) {
      const Placement gpu{DeviceKind::kCuda, precision};
      const std::string name =
          fmt::format("{}-{}", name_of(activation), precision == DType::kF32 ? "f32" : "bf16");
      SCOPED_TRACE(name);
      const Outcome here = train_to(name + "-cpu", activation, {}, -1, split);
      const Outcome whole = train_to(name + "-whole", activation, gpu, -1, split);
      EXPECT_NEAR(metric(whole.last, "nmse"), metric(here.last, "nmse"), 0.05);
      EXPECT_NEAR(metric(whole.last, "l0"), metric(here.last, "l0"), 1.0);
      train_to(name + "-parts", activation, gpu, 33, split);
      const Outcome resumed = train_to(name + "-parts", activation, gpu, -1, split);
      EXPECT_EQ(whole.weights, resumed.weights);
      EXPECT_EQ(whole.density, resumed.density);
    }
}

}  // namespace
}  // namespace filigree

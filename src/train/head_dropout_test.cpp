#include <gtest/gtest.h>

#include "filigree/train.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

// What each head's output is multiplied with in a window, read off the heads of the first layer,
// whose inputs do not change: by window and head.
std::vector<float> factors_of(const Model& model, const Batch& batch, const HeadDropout& silent,
                              std::int64_t micro_step) {
  const char* name = "blocks.0.attn.hook_z";
  Taps plain, changed;
  plain.observe(name);
  model.forward(batch.ids, {.taps = &plain});
  silent.apply(changed, batch, micro_step);
  changed.observe(name);
  model.forward(batch.ids, {.taps = &changed});
  const Tensor& before = plain.value(name);
  const Tensor& after = changed.value(name);
  const std::int64_t B = before.size(0), T = before.size(1), H = before.size(2), D = before.size(3);
  std::vector<float> factors(static_cast<std::size_t>(B * H));
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h) {
      float& factor = factors[static_cast<std::size_t>(b * H + h)];
      factor = after.f32()[(b * T * H + h) * D] / before.f32()[(b * T * H + h) * D];
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t d = 0; d < D; ++d) {
          const std::int64_t at = ((b * T + t) * H + h) * D + d;
          EXPECT_NEAR(after.f32()[at], factor * before.f32()[at], 1e-6f);
        }
    }
  return factors;
}

Batch windows(std::int64_t count) {
  Batch batch{Tensor::empty({count, 8}, DType::kI32), {}};
  for (std::int64_t i = 0; i < count * 8; ++i)
    batch.ids.mutable_i32()[i] = static_cast<std::int32_t>(i * 7 % 20);
  return batch;
}

TEST(HeadDropout, SilencesWholeHeadsOfWindowsAndMakesTheOthersLouder) {
  const std::unique_ptr<Model> model = make_model(tiny_config(false), 1);
  const std::vector<float> factors = factors_of(*model, windows(500), {0.2, 5}, 0);
  int silent = 0;
  for (const float factor : factors) {
    if (factor == 0.0f)
      ++silent;
    else
      EXPECT_NEAR(factor, 1.25f, 1e-4f);
  }
  // 1000 draws: 200 with a standard deviation of 13.
  EXPECT_NEAR(silent, 200, 50);
}

TEST(HeadDropout, FadesToNone) {
  const HeadDropout silent{0.4, 5, 100, 200};
  EXPECT_EQ(silent.share_at(0), 0.4);
  EXPECT_EQ(silent.share_at(100), 0.4);
  EXPECT_NEAR(silent.share_at(150), 0.2, 1e-12);
  EXPECT_EQ(silent.share_at(200), 0.0);
  EXPECT_EQ((HeadDropout{0.4, 5}).share_at(1000), 0.4);
  const HeadDropout sudden{0.4, 5, 100, 100};
  EXPECT_EQ(sudden.share_at(99), 0.4);
  EXPECT_EQ(sudden.share_at(100), 0.0);

  const std::unique_ptr<Model> model = make_model(tiny_config(false), 1);
  int zeros = 0;
  for (const float factor : factors_of(*model, windows(500), silent, 150)) {
    if (factor == 0.0f)
      ++zeros;
    else
      EXPECT_NEAR(factor, 1.25f, 1e-4f);
  }
  EXPECT_NEAR(zeros, 200, 50);
}

TEST(HeadDropout, LayersAreDrawnApart) {
  const std::unique_ptr<Model> model = make_model(tiny_config(false), 1);
  const Batch batch = windows(64);
  Taps taps;
  HeadDropout{0.5, 5}.apply(taps, batch, 0);
  taps.observe("blocks.*.attn.hook_z");
  model->forward(batch.ids, {.taps = &taps});
  int differ = 0;
  const Tensor& first = taps.value("blocks.0.attn.hook_z");
  const Tensor& second = taps.value("blocks.1.attn.hook_z");
  for (std::int64_t at = 0; at < first.elements(); at += 8)
    differ += (first.f32()[at] == 0.0f) != (second.f32()[at] == 0.0f);
  EXPECT_GT(differ, 0);
}

TEST(HeadDropout, DependsOnStepAndSeedAndNotOnTheRanks) {
  const std::unique_ptr<Model> model = make_model(tiny_config(false), 1);
  const HeadDropout silent{0.5, 5};
  const Batch all = windows(32);
  const std::vector<float> factors = factors_of(*model, all, silent, 3);
  EXPECT_EQ(factors_of(*model, all, silent, 3), factors);
  EXPECT_NE(factors_of(*model, all, silent, 4), factors);
  EXPECT_NE(factors_of(*model, all, {0.5, 6}, 3), factors);
  // The second half as another rank has it.
  Batch half{Tensor::empty({16, 8}, DType::kI32), {}, 16};
  for (std::int64_t i = 0; i < 16 * 8; ++i) half.ids.mutable_i32()[i] = all.ids.i32()[16 * 8 + i];
  const std::vector<float> of_half = factors_of(*model, half, silent, 3);
  EXPECT_TRUE(std::equal(of_half.begin(), of_half.end(), factors.begin() + 32));
}

TEST(HeadDropout, RefusesAShareThatIsNone) {
  const std::unique_ptr<Model> model = make_model(tiny_config(false), 1);
  EXPECT_EQ(error_of([&] {
              LanguageModelling(*model, {1.0, 0});
            }),
            "the share 1 of silent heads is not in [0, 1)");
}

struct RunWithSilentHeads : SmallTraining {
  RunWithSilentHeads() : SmallTraining(false, 12) {
    objective = std::make_unique<LanguageModelling>(*model, HeadDropout{0.3, 7});
    options.checkpoint_every = 5;
  }
  TrainerResult train(RunFolder& folder, const TrainerCallbacks& callbacks = {}) {
    return filigree::train(*trained, *objective, source, *optimizer, folder, options, callbacks);
  }
};

TEST(HeadDropout, ResumesToTheSameBits) {
  const TemporaryFolder whole, stopped;
  RunFolder first(whole.path()), second(stopped.path());
  RunWithSilentHeads straight, interrupted, resumed;
  const TrainerResult expected = straight.train(first);
  TrainerCallbacks stop;
  int steps = 0;
  stop.progress = [&](std::int64_t step, const Metrics&) { steps = static_cast<int>(step); };
  stop.stop_requested = [&] { return steps >= 7; };
  interrupted.train(second, stop);
  ASSERT_EQ(steps, 7);
  resumed.options.resume = true;
  const TrainerResult result = resumed.train(second);
  EXPECT_EQ(result.steps, 12);
  EXPECT_EQ(metric(result.last, "loss"), metric(expected.last, "loss"));
}

TEST(HeadDropout, ARunGoesOnOnlyWithTheSameShare) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  RunWithSilentHeads run, other;
  run.train(folder);
  other.objective = std::make_unique<LanguageModelling>(*other.model);
  other.options.resume = true;
  EXPECT_NE(error_of([&] { other.train(folder); }).find("drop_heads"), std::string::npos);
}

}  // namespace
}  // namespace filigree

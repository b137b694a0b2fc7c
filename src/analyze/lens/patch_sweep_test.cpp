#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/lens.h"
#include "filigree/tasks.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 2e-4;

// A whole run on one prompt's `from` tokens with one tap's elements taken from the other prompt.
double patched_metric(const Model& model, const TaskPrompt& prompt, bool base_corrupt,
                      const PatchTarget& target) {
  const std::string name = tap_name(target);
  Taps source;
  source.observe(name);
  model.forward(prompt_ids({&prompt}, !base_corrupt), {.taps = &source});
  Taps taps;
  taps.intervene(name, [&](const Variable& value) {
    Tensor changed = value.value().clone();
    for_ranges(target, changed.shape(), 0, 0, 0,
               [&](std::int64_t offset, std::int64_t, std::int64_t count) {
                 std::copy_n(source.value(name).f32() + offset, count,
                             changed.mutable_f32() + offset);
               });
    return Variable(changed);
  });
  const Tensor logits = model.forward(prompt_ids({&prompt}, base_corrupt), {.taps = &taps}).value();
  const std::int64_t T = logits.size(1), V = logits.size(2);
  Tensor last = Tensor::empty({1, V});
  std::copy_n(logits.f32() + (T - 1) * V, V, last.mutable_f32());
  return measure(Metric::kLogitDifference, last, {&prompt})[0];
}

double plain_metric(const Model& model, const TaskPrompt& prompt, bool corrupt) {
  const Tensor logits =
      model.forward(prompt_ids({&prompt}, corrupt), {.last_position_only = true}).value();
  return measure(Metric::kLogitDifference, logits, {&prompt})[0];
}

// Both directions against whole runs with the same change, on every layer and column.
TEST(PatchSweep, AgreesWithRunsByHand) {
  for (const bool gated : {false, true}) {
    const auto model = small_model(gated, 2);
    const auto prompts = small_prompts({7, 7, 7});
    double clean = 0, corrupt = 0;
    for (const TaskPrompt& prompt : prompts) {
      clean += plain_metric(*model, prompt, false);
      corrupt += plain_metric(*model, prompt, true);
    }
    for (const PatchDirection direction : {PatchDirection::kNoising, PatchDirection::kDenoising}) {
      for (const SweepOptions& options :
           {SweepOptions{Site::kZ, SweepAxis::kHead, direction, {}},
            SweepOptions{Site::kPattern, SweepAxis::kHead, direction, {}},
            SweepOptions{Site::kResidual, SweepAxis::kPosition, direction, {}},
            SweepOptions{Site::kMlpOut, SweepAxis::kPosition, direction, {}}}) {
        SCOPED_TRACE(
            fmt::format("{} {} gated {}", name_of(options.site), name_of(direction), gated));
        const PatchSweep sweep = sweep_patches(*model, prompts, options);
        ASSERT_EQ(sweep.columns, options.axis == SweepAxis::kHead ? 3 : 7);
        EXPECT_FALSE(sweep.from_end);
        EXPECT_NEAR(sweep.clean.mean, clean / 3, kTolerance);
        EXPECT_NEAR(sweep.corrupt.mean, corrupt / 3, kTolerance);
        for (std::int64_t layer = 0; layer < 2; ++layer)
          for (std::int64_t column = 0; column < sweep.columns; ++column) {
            PatchTarget target = {options.site, layer};
            (options.axis == SweepAxis::kHead ? target.head : target.position) = column;
            const bool denoising = direction == PatchDirection::kDenoising;
            double sum = 0;
            for (const TaskPrompt& prompt : prompts)
              sum += patched_metric(*model, prompt, denoising, target);
            const double expected =
                denoising ? (sum - corrupt) / (clean - corrupt) : (clean - sum) / (clean - corrupt);
            EXPECT_NEAR(sweep.at(layer, column).mean, expected,
                        kTolerance * 10 / std::abs(clean - corrupt))
                << layer << " " << column;
          }
      }
    }
  }
}

// The whole residual stream at the end decides everything; positions count from the end.
TEST(PatchSweep, AlignsPromptsOfDifferentLengthsAtTheirEnds) {
  const auto model = small_model(false, 2);
  auto prompts = small_prompts({9, 6, 8});
  SweepOptions options = {Site::kResidual, SweepAxis::kPosition, PatchDirection::kNoising, {}};
  const PatchSweep sweep = sweep_patches(*model, prompts, options);
  EXPECT_TRUE(sweep.from_end);
  EXPECT_EQ(sweep.columns, 6);
  double clean = 0, corrupt = 0, sum = 0;
  for (const TaskPrompt& prompt : prompts) {
    clean += plain_metric(*model, prompt, false);
    corrupt += plain_metric(*model, prompt, true);
    sum += patched_metric(*model, prompt, false, {Site::kResidual, 1, -1, prompt.length() - 2});
  }
  EXPECT_NEAR(sweep.at(1, 4).mean, (clean - sum) / (clean - corrupt), 1e-3);
  // With equal ends every prompt shares them.
  for (TaskPrompt& prompt : prompts) prompt.clean.back() = prompt.corrupt.back() = 5;
  const std::vector<TokenId> tokens = common_tokens(prompts);
  ASSERT_EQ(tokens.size(), 6u);
  EXPECT_EQ(tokens.back(), 5);
}

TEST(PatchSweep, IsExactlyZeroBeforeTheFirstDifference) {
  const auto model = small_model(false, 3);
  for (const auto& lengths : {std::vector<std::size_t>{12, 12}, std::vector<std::size_t>{12, 9}}) {
    const auto prompts = small_prompts(lengths);  // they differ from a third of the length on
    const PatchSweep sweep = sweep_patches(
        *model, prompts, {Site::kResidual, SweepAxis::kPosition, PatchDirection::kNoising, {}});
    const std::int64_t first = sweep.from_end ? 9 - 8 : 4;  // from the end: 12 - 4 and 9 - 3
    for (std::int64_t layer = 0; layer < 3; ++layer)
      for (std::int64_t column = 0; column < first; ++column) {
        EXPECT_EQ(sweep.at(layer, column).mean, 0);
        EXPECT_EQ(sweep.at(layer, column).error, 0.0);
      }
    EXPECT_NE(sweep.at(0, first).mean, 0);
  }
}

TEST(PatchSweep, KnowsTheErrorOfItsMeans) {
  const auto model = small_model(false, 2);
  const auto prompts = small_prompts({7, 7});
  const PatchSweep sweep = sweep_patches(*model, prompts, {});
  std::vector<double> lost, whole;
  for (const TaskPrompt& prompt : prompts) {
    const double clean = plain_metric(*model, prompt, false);
    lost.push_back(clean - patched_metric(*model, prompt, false, {Site::kZ, 0, 1}));
    whole.push_back(clean - plain_metric(*model, prompt, true));
  }
  // Of two values the standard error is half of their distance.
  const double ratio = (lost[0] + lost[1]) / (whole[0] + whole[1]);
  const double rest = std::abs((lost[0] - ratio * whole[0]) - (lost[1] - ratio * whole[1])) / 2;
  EXPECT_NEAR(sweep.at(0, 1).error.value(), rest / std::abs((whole[0] + whole[1]) / 2), 1e-3);
}

TEST(PatchSweep, RefusesWhatMakesNoSense) {
  const auto model = small_model(false, 2);
  const auto prompts = small_prompts({6});
  const auto error_of = [&](const SweepOptions& options) {
    return filigree::error_of([&] { sweep_patches(*model, prompts, options); });
  };
  EXPECT_THAT(error_of({Site::kResidual, SweepAxis::kHead}), HasSubstr("has no heads"));
  EXPECT_THAT(error_of({Site::kEmbedding, SweepAxis::kPosition}), HasSubstr("embedding"));
  SweepOptions options = {Site::kZ, SweepAxis::kHead, PatchDirection::kDenoising};
  options.patch.replacement = Replacement::kZero;
  EXPECT_THAT(error_of(options), HasSubstr("zero values go with noising"));
  options.patch = {.metric = Metric::kKl};
  EXPECT_THAT(error_of(options), HasSubstr("kl"));
}

}  // namespace
}  // namespace filigree

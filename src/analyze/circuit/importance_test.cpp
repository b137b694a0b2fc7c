// Importance: exact drops, their first-order estimates and what relates the two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

class ImportanceOf : public testing::TestWithParam<SmallKind> {
 protected:
  std::unique_ptr<Model> model_ = small_model(GetParam());
  std::vector<TaskPrompt> prompts_ = small_prompts({7, 5, 7, 5});

  std::vector<PatchTarget> targets() const {
    std::vector<PatchTarget> all = all_heads(model_->config());
    for (const PatchTarget& mlp : all_mlps(model_->config())) all.push_back(mlp);
    all.push_back({Site::kZ, 1, 2, 3});
    return all;
  }
};

TEST_P(ImportanceOf, ExactlyIsTheDropOfThePatchedRun) {
  const std::vector<PatchTarget> all = targets();
  const Importance exact = exact_importance(*model_, prompts_, all);
  std::vector<PatchSet> sets;
  for (const PatchTarget& target : all) sets.push_back({target});
  const PatchedRuns runs = run_patched(*model_, prompts_, sets);
  for (std::size_t t = 0; t < all.size(); ++t)
    for (std::size_t i = 0; i < prompts_.size(); ++i)
      EXPECT_DOUBLE_EQ(exact.drops[t][i], runs.clean[i] - runs.patched[t][i]);
  const std::vector<std::size_t> order = exact.order();
  for (std::size_t i = 1; i < order.size(); ++i)
    EXPECT_GE(std::abs(exact.of(order[i - 1]).mean), std::abs(exact.of(order[i]).mean));
}

// The change of the metric for a small step of a part towards its corrupt value.
TEST_P(ImportanceOf, ByAttributionIsTheSlopeTowardsTheCorruptValue) {
  for (const Metric metric : {Metric::kLogitDifference, Metric::kProbabilityDifference}) {
    PatchOptions options;
    options.metric = metric;
    const Importance attributed = attributed_importance(*model_, prompts_, targets(), 0, options);
    for (std::size_t t = 0; t < attributed.targets.size(); ++t) {
      const PatchTarget& target = attributed.targets[t];
      const std::string tap = tap_name(target);
      for (std::size_t i = 0; i < prompts_.size(); ++i) {
        const PromptRefs one = {&prompts_[i]};
        Taps observer;
        observer.observe(tap);
        model_->forward(prompt_ids(one, true), {.taps = &observer});
        const Tensor corrupt = observer.value(tap);
        const auto metric_at = [&](float share) {
          Taps taps;
          taps.intervene(tap, [&](const Variable& x) {
            Tensor changed = x.value().clone();
            for_ranges(target, changed.shape(), 0, 0, 0,
                       [&](std::int64_t offset, std::int64_t, std::int64_t count) {
                         for (std::int64_t j = offset; j < offset + count; ++j)
                           changed.mutable_f32()[j] +=
                               share * (corrupt.f32()[j] - x.value().f32()[j]);
                       });
            return Variable(changed);
          });
          const Tensor logits =
              model_->forward(prompt_ids(one, false), {.taps = &taps, .last_position_only = true})
                  .value();
          return measure(metric, logits, one)[0];
        };
        constexpr float kStep = 1e-3f;
        const double slope = (metric_at(kStep) - metric_at(-kStep)) / (2 * kStep);
        EXPECT_NEAR(attributed.drops[t][i], -slope, 2e-2 * std::abs(slope) + 4e-3)
            << text_of(target) << " of prompt " << i;
      }
    }
  }
}

TEST_P(ImportanceOf, ByOneStepIsTheGradientHalfWay) {
  // Not the one at the clean run.
  const Importance none = attributed_importance(*model_, prompts_, targets(), 0);
  const Importance one = attributed_importance(*model_, prompts_, targets(), 1);
  double difference = 0;
  for (std::size_t t = 0; t < none.targets.size(); ++t)
    difference += std::abs(none.of(t).mean - one.of(t).mean);
  EXPECT_GT(difference, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Models, ImportanceOf,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kParallel),
                         [](const auto& parameter) { return text_of(parameter.param); });

// Of a dense model: gates jump between clean and corrupt, and their jumps are in no slope.
TEST(IntegratedGradients, OfTheEmbeddingsAddUpToTheDifference) {
  const auto model = small_model(false);
  const std::vector<TaskPrompt> prompts = small_prompts({7, 5, 7, 5});
  const std::vector<PatchTarget> embedding = {{Site::kEmbedding}};
  const Importance integrated = attributed_importance(*model, prompts, embedding, 400);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_NEAR(integrated.drops[0][i], integrated.clean[i] - integrated.corrupt[i],
                0.02 * std::abs(integrated.clean[i] - integrated.corrupt[i]) + 0.02);
}

TEST(Attribution, RefusesWhatHasNoSlope) {
  const auto model = small_model(false);
  const std::vector<TaskPrompt> prompts = small_prompts({6});
  const std::vector<PatchTarget> heads = all_heads(model->config());
  PatchOptions options;
  options.metric = Metric::kAccuracy;
  EXPECT_THROW(attributed_importance(*model, prompts, heads, 0, options), Error);
  options.metric = Metric::kKl;
  EXPECT_THROW(attributed_importance(*model, prompts, heads, 0, options), Error);
  EXPECT_NO_THROW(attributed_importance(*model, prompts, heads, 2, options));
  options.metric = Metric::kLogitDifference;
  options.replacement = Replacement::kMean;
  EXPECT_THROW(attributed_importance(*model, prompts, heads, 0, options), Error);
}

}  // namespace
}  // namespace filigree

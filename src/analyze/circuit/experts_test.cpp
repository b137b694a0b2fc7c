// Experts of mixtures as parts: patched, attributed, swept and switched off one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/circuit.h"
#include "filigree/lens.h"
#include "filigree/tasks.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kTolerance = 2e-4;
constexpr std::int64_t kLayers = 3, kExperts = 8;

PatchTarget expert(std::int64_t layer, std::int64_t number) {
  return {.site = Site::kExpertOut, .layer = layer, .expert = number};
}

class Experts : public testing::Test {
 protected:
  double metric_by_hand(const TaskPrompt& prompt, Taps* taps) const {
    const Tensor logits =
        model_->forward(prompt_ids({&prompt}, false), {.taps = taps}).value();  // [1, T, V]
    const float* last = logits.f32() + (prompt.length() - 1) * kTestVocabulary;
    return static_cast<double>(last[prompt.answers[0]]) -
           static_cast<double>(last[prompt.wrong[0]]);
  }

  double metric_with(const TaskPrompt& prompt, const Interventions& changes) const {
    AppliedInterventions applied(*model_, changes);
    Taps taps;
    applied.put_on(taps);
    return metric_by_hand(prompt, &taps);
  }

  Tensor observed_at(const TaskPrompt& prompt, const std::string& tap, bool corrupt) const {
    Taps taps;
    taps.observe(tap);
    model_->forward(prompt_ids({&prompt}, corrupt), {.taps = &taps});
    return taps.value(tap);
  }

  // The experts of a layer that some token of the prompt chose.
  std::set<std::int64_t> chosen_in(const TaskPrompt& prompt, std::int64_t layer) const {
    const Tensor gates =
        observed_at(prompt, "blocks." + std::to_string(layer) + ".mlp.hook_expert_gates", false);
    std::set<std::int64_t> chosen;
    for (std::int64_t i = 0; i < gates.elements(); ++i)
      if (gates.f32()[i] != 0.0f) chosen.insert(i % kExperts);
    return chosen;
  }

  std::unique_ptr<Model> model_ = small_model(SmallKind::kMixture);
  std::vector<TaskPrompt> prompts_ = small_prompts({9, 6, 9, 6});
};

TEST_F(Experts, StandInTheListWhereOtherModelsHaveMlps) {
  const std::vector<PatchTarget> parts = all_mlps(model_->config());
  ASSERT_EQ(parts.size(), static_cast<std::size_t>(kLayers * kExperts));
  for (std::int64_t l = 0; l < kLayers; ++l)
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const PatchTarget& part = parts[static_cast<std::size_t>(l * kExperts + e)];
      EXPECT_EQ(part, expert(l, e));
      EXPECT_EQ(part, target_of(parse_component(text_of(part))));
      EXPECT_EQ(tap_name(part), "blocks." + std::to_string(l) + ".mlp.hook_expert_out");
    }
}

TEST_F(Experts, PatchedOneByOneAreTheSameAsByHand) {
  std::vector<PatchSet> sets;
  const std::vector<PatchTarget> parts = all_mlps(model_->config());
  for (const PatchTarget& part : parts) sets.push_back({part});
  double largest = 0;
  for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kZero})
    for (const std::int64_t tokens : {1, 100, 100000}) {  // one run a pass, some, all
      PatchOptions options;
      options.replacement = replacement, options.tokens_at_once = tokens;
      const PatchedRuns runs = run_patched(*model_, prompts_, sets, options);
      for (std::size_t s = 0; s < parts.size(); ++s)
        for (std::size_t i = 0; i < prompts_.size(); ++i) {
          const std::string tap = tap_name(parts[s]);
          const Tensor corrupt = observed_at(prompts_[i], tap, true);
          Taps taps;
          taps.intervene(tap, [&](const Variable& out) {
            Tensor changed = out.value().clone();  // [1, T, E, d]
            const std::int64_t d = changed.size(3);
            for (std::int64_t t = 0; t < changed.size(1); ++t)
              for (std::int64_t j = 0; j < d; ++j) {
                const std::int64_t at = (t * kExperts + parts[s].expert) * d + j;
                changed.mutable_f32()[at] =
                    replacement == Replacement::kZero ? 0.0f : corrupt.f32()[at];
              }
            return Variable(changed);
          });
          EXPECT_NEAR(runs.patched[s][i], metric_by_hand(prompts_[i], &taps), kTolerance)
              << text_of(parts[s]) << " of prompt " << i;
          largest = std::max(largest, std::abs(runs.patched[s][i] - runs.clean[i]));
        }
    }
  EXPECT_GT(largest, 100 * kTolerance);  // else the test would show nothing
}

TEST_F(Experts, AtMeansAreTheMeanOfWhatTheyAdd) {
  PatchOptions options;
  options.replacement = Replacement::kMean;
  const PatchTarget part = expert(1, *chosen_in(prompts_[0], 1).begin());
  const PatchedRuns runs = run_patched(*model_, prompts_, {{part}}, options);
  std::vector<double> mean;
  double count = 0;
  for (const TaskPrompt& prompt : prompts_) {
    const Tensor out = observed_at(prompt, tap_name(part), true);
    const std::int64_t d = out.size(3);
    mean.resize(static_cast<std::size_t>(d), 0.0);
    for (std::int64_t t = 0; t < out.size(1); ++t, ++count)
      for (std::int64_t j = 0; j < d; ++j)
        mean[static_cast<std::size_t>(j)] += out.f32()[(t * kExperts + part.expert) * d + j];
  }
  Taps taps;
  taps.intervene(tap_name(part), [&](const Variable& out) {
    Tensor changed = out.value().clone();
    const std::int64_t d = changed.size(3);
    for (std::int64_t t = 0; t < changed.size(1); ++t)
      for (std::int64_t j = 0; j < d; ++j)
        changed.mutable_f32()[(t * kExperts + part.expert) * d + j] =
            static_cast<float>(mean[static_cast<std::size_t>(j)] / count);
    return Variable(changed);
  });
  EXPECT_NEAR(runs.patched[0][0], metric_by_hand(prompts_[0], &taps), kTolerance);
}

TEST_F(Experts, OfALayerTogetherAreItsMlp) {
  for (const Replacement replacement : {Replacement::kZero, Replacement::kCorrupt}) {
    std::vector<PatchSet> sets;
    for (std::int64_t l = 0; l < kLayers; ++l) {
      PatchSet experts;
      for (std::int64_t e = 0; e < kExperts; ++e) experts.push_back(expert(l, e));
      sets.push_back(experts);
      sets.push_back({{Site::kMlpOut, l}});
      sets.push_back({{Site::kExpertOut, l}});  // all of them
    }
    const PatchedRuns runs = run_patched(*model_, prompts_, sets, {.replacement = replacement});
    double largest = 0;
    for (std::size_t s = 0; s < sets.size(); s += 3)
      for (std::size_t i = 0; i < prompts_.size(); ++i) {
        EXPECT_NEAR(runs.patched[s][i], runs.patched[s + 1][i], kTolerance) << s;
        EXPECT_NEAR(runs.patched[s][i], runs.patched[s + 2][i], kTolerance) << s;
        largest = std::max(largest, std::abs(runs.patched[s][i] - runs.clean[i]));
      }
    EXPECT_GT(largest, 100 * kTolerance);
  }
}

TEST_F(Experts, AndHeadsTogetherAreTheWholeEffect) {
  PatchSet everything = all_heads(model_->config());
  for (const PatchTarget& part : all_mlps(model_->config())) everything.push_back(part);
  const PatchedRuns runs = run_patched(*model_, prompts_, {everything});
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    EXPECT_NEAR(runs.patched[0][i], runs.corrupt[i], kTolerance);
}

// To first order a layer's experts add up to its MLP; measured one by one they need not, but those
// that neither run chooses are worth nothing.
TEST_F(Experts, HaveEffectsThatAddUpToFirstOrder) {
  std::vector<PatchTarget> targets = all_mlps(model_->config());
  for (std::int64_t l = 0; l < kLayers; ++l) targets.push_back({Site::kMlpOut, l});
  const Importance estimates = attributed_importance(*model_, prompts_, targets, 0);
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    for (std::int64_t l = 0; l < kLayers; ++l) {
      double sum = 0;
      for (std::int64_t e = 0; e < kExperts; ++e)
        sum += estimates.drops[static_cast<std::size_t>(l * kExperts + e)][i];
      const double whole = estimates.drops[static_cast<std::size_t>(kLayers * kExperts + l)][i];
      EXPECT_NEAR(sum, whole, 1e-3 * (1 + std::abs(whole)));
    }
  const Importance exact = exact_importance(*model_, prompts_, targets);
  int silent = 0, heard = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(kLayers * kExperts); ++s)
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      TaskPrompt swapped = prompts_[i];
      swapped.clean = swapped.corrupt;
      const std::int64_t layer = targets[s].layer, number = targets[s].expert;
      const bool chosen = chosen_in(prompts_[i], layer).contains(number) ||
                          chosen_in(swapped, layer).contains(number);
      if (!chosen) {
        EXPECT_NEAR(exact.drops[s][i], 0.0, kTolerance) << text_of(targets[s]);
      }
      silent += chosen ? 0 : 1;
      heard += std::abs(exact.drops[s][i]) > 10 * kTolerance ? 1 : 0;
    }
  EXPECT_GT(silent, 0);
  EXPECT_GT(heard, 5);
}

TEST_F(Experts, AreSweptByLayerAndExpert) {
  const PatchSweep sweep =
      sweep_patches(*model_, prompts_, {.site = Site::kExpertOut, .axis = SweepAxis::kExpert});
  EXPECT_EQ(sweep.layers, kLayers);
  EXPECT_EQ(sweep.columns, kExperts);
  EXPECT_FALSE(sweep.from_end);
  const Importance exact = exact_importance(*model_, prompts_, all_mlps(model_->config()));
  const double whole = estimate(exact.clean).mean - estimate(exact.corrupt).mean;
  for (std::size_t s = 0; s < sweep.effects.size(); ++s)
    EXPECT_NEAR(sweep.effects[s].mean, exact.of(s).mean / whole, 1e-9 + 1e-6 / std::abs(whole));
  // By position all experts are one.
  const std::vector<TaskPrompt> one_length = {prompts_[0], prompts_[2]};
  const PatchSweep together =
      sweep_patches(*model_, one_length, {.site = Site::kExpertOut, .axis = SweepAxis::kPosition});
  const PatchSweep mlps =
      sweep_patches(*model_, one_length, {.site = Site::kMlpOut, .axis = SweepAxis::kPosition});
  ASSERT_EQ(together.columns, 9);
  for (std::size_t s = 0; s < together.effects.size(); ++s)
    EXPECT_NEAR(together.effects[s].mean, mlps.effects[s].mean, 1e-3);
  EXPECT_THAT(error_of([&] {
                sweep_patches(*model_, prompts_,
                              {.site = Site::kMlpOut, .axis = SweepAxis::kExpert});
              }),
              HasSubstr("mlp-out has no experts"));
  EXPECT_THAT(error_of([&] {
                sweep_patches(*small_model(SmallKind::kLlama), prompts_,
                              {.site = Site::kExpertOut, .axis = SweepAxis::kExpert});
              }),
              HasSubstr("has no experts"));
}

TEST_F(Experts, ThatNoTokenChoseAreSwitchedOffWithoutEffect) {
  int silent = 0, heard = 0;
  for (const TaskPrompt& prompt : prompts_) {
    const double plain = metric_by_hand(prompt, nullptr);
    for (std::int64_t l = 0; l < kLayers; ++l)
      for (std::int64_t e = 0; e < kExperts; ++e) {
        Interventions changes;
        changes.add_ablations(expert_name({l, e}));
        const double without = metric_with(prompt, changes);
        const PatchedRuns runs =
            run_patched(*model_, {prompt}, {{expert(l, e)}}, {.replacement = Replacement::kZero});
        EXPECT_NEAR(without, runs.patched[0][0], kTolerance);
        if (chosen_in(prompt, l).contains(e)) {
          heard += std::abs(without - plain) > 10 * kTolerance ? 1 : 0;
        } else {
          EXPECT_NEAR(without, plain, kTolerance);
          ++silent;
        }
      }
  }
  EXPECT_GT(silent, 0);
  EXPECT_GT(heard, 10);
}

TEST_F(Experts, AreScaledAndPatchedAtPositions) {
  const TaskPrompt& prompt = prompts_[0];
  const Tensor before = observed_at(prompt, "blocks.1.mlp.hook_expert_out", false);
  const Tensor corrupt = observed_at(prompt, "blocks.1.mlp.hook_expert_out", true);
  const std::int64_t number = *chosen_in(prompt, 1).begin();
  Interventions changes;
  changes.add_scales(expert_name({1, number}) + "=0.5");
  changes.add_patch("L1E*@4=corrupt");
  changes.changes[0].ids = prompt.corrupt;
  AppliedInterventions applied(*model_, changes);
  Taps taps;
  applied.put_on(taps);
  taps.observe("blocks.1.mlp.hook_expert_out");
  metric_by_hand(prompt, &taps);
  const Tensor& after = taps.value("blocks.1.mlp.hook_expert_out");
  const std::int64_t d = after.size(3);
  for (std::int64_t t = 0; t < after.size(1); ++t)
    for (std::int64_t e = 0; e < kExperts; ++e)
      for (std::int64_t j = 0; j < d; ++j) {
        const std::int64_t at = (t * kExperts + e) * d + j;
        const float taken = (t == 4 ? corrupt : before).f32()[at];
        EXPECT_FLOAT_EQ(after.f32()[at], e == number ? 0.5f * taken : taken);
      }
}

TEST_F(Experts, ThatAreNotThereAreNamed) {
  const auto ablated = [](const Model& model, const char* place) {
    return error_of([&] {
      Interventions changes;
      changes.add_ablations(place);
      AppliedInterventions(model, changes);
    });
  };
  EXPECT_THAT(ablated(*model_, "L1E8"),
              AllOf(HasSubstr("L1E8"), HasSubstr("no expert 8"), HasSubstr("there are 8")));
  EXPECT_THAT(ablated(*model_, "L3E0"), HasSubstr("no layer 3; there are 3"));
  for (const SmallKind kind : {SmallKind::kDense, SmallKind::kLlama}) {
    const auto model = small_model(kind);
    EXPECT_THAT(ablated(*model, "L1E0"), AllOf(HasSubstr("L1E0"), HasSubstr("has no experts")));
    for (const PatchTarget& part : all_mlps(model->config())) EXPECT_EQ(part.site, Site::kMlpOut);
  }
  const auto patched = [&](const PatchTarget& target) {
    return error_of([&] { run_patched(*model_, prompts_, {{target}}); });
  };
  EXPECT_THAT(patched(expert(0, 8)), HasSubstr("no expert 8; there are 8"));
  EXPECT_THAT(patched({Site::kExpertOut, 0, 1}), HasSubstr("no head 1"));
  EXPECT_THAT(patched({.site = Site::kMlpOut, .layer = 0, .expert = 1}), HasSubstr("no expert 1"));
}

}  // namespace
}  // namespace filigree

// Patched runs against the same interventions done by hand through taps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analyze_test_support.h"
#include "analyze/circuit/circuit_test_support.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 2e-4;  // of logit differences of a few units

class Patching : public testing::TestWithParam<SmallKind> {
 protected:
  std::unique_ptr<Model> model_ = small_model(GetParam());
  std::vector<TaskPrompt> prompts_ = small_prompts({9, 6, 9, 9, 6, 12});

  double metric_by_hand(const TaskPrompt& prompt, Taps* taps, bool corrupt = false) const {
    const Tensor logits =
        model_->forward(prompt_ids({&prompt}, corrupt), {.taps = taps}).value();  // [1, T, V]
    const float* last = logits.f32() + (prompt.length() - 1) * kTestVocabulary;
    return static_cast<double>(last[prompt.answers[0]]) -
           static_cast<double>(last[prompt.wrong[0]]);
  }

  // The tap's value in the corrupt run of one prompt.
  Tensor corrupt_value(const TaskPrompt& prompt, const std::string& tap) const {
    Taps taps;
    taps.observe(tap);
    model_->forward(prompt_ids({&prompt}, true), {.taps = &taps});
    return taps.value(tap);
  }
};

TEST_P(Patching, NothingGivesTheCleanMetricAndEverythingTheCorruptOne) {
  PatchSet everything;
  for (const PatchTarget& head : all_heads(model_->config())) everything.push_back(head);
  const PatchSet residual = {{Site::kResidual, 0}}, embedding = {{Site::kEmbedding}};
  const PatchedRuns runs = run_patched(*model_, prompts_, {{}, everything, residual, embedding});
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const double clean = metric_by_hand(prompts_[i], nullptr);
    const double corrupt = metric_by_hand(prompts_[i], nullptr, true);
    EXPECT_GT(std::abs(clean - corrupt), 10 * kTolerance);  // else the test would show nothing
    EXPECT_NEAR(runs.clean[i], clean, kTolerance);
    EXPECT_NEAR(runs.corrupt[i], corrupt, kTolerance);
    EXPECT_EQ(runs.patched[0][i], runs.clean[i]);
    for (const std::size_t set : {1u, 2u, 3u})
      EXPECT_NEAR(runs.patched[set][i], runs.corrupt[i], kTolerance) << set;
  }
}

TEST_P(Patching, OneHeadIsTheSameAsByHand) {
  const std::vector<PatchTarget> heads = all_heads(model_->config());
  std::vector<PatchSet> sets;
  for (const PatchTarget& head : heads) sets.push_back({head});
  for (const std::int64_t tokens : {1, 100, 100000}) {  // one run a pass, some, all
    PatchOptions options;
    options.tokens_at_once = tokens;
    const PatchedRuns runs = run_patched(*model_, prompts_, sets, options);
    for (std::size_t s = 0; s < heads.size(); ++s) {
      const std::string tap = tap_name(heads[s]);
      for (std::size_t i = 0; i < prompts_.size(); ++i) {
        const Tensor corrupt = corrupt_value(prompts_[i], tap);
        Taps taps;
        taps.intervene(tap, [&](const Variable& z) {
          Tensor changed = z.value().clone();  // [1, T, H, D]
          const std::int64_t H = changed.size(2), D = changed.size(3);
          for (std::int64_t t = 0; t < changed.size(1); ++t)
            for (std::int64_t j = 0; j < D; ++j) {
              const std::int64_t at = (t * H + heads[s].head) * D + j;
              changed.mutable_f32()[at] = corrupt.f32()[at];
            }
          return Variable(changed);
        });
        EXPECT_NEAR(runs.patched[s][i], metric_by_hand(prompts_[i], &taps), kTolerance)
            << text_of(heads[s]) << " of prompt " << i;
      }
    }
  }
}

TEST_P(Patching, EverySiteAndReplacementIsTheSameAsByHand) {
  const std::vector<PatchTarget> targets = {
      {Site::kEmbedding, 0, -1, 4}, {Site::kResidual, 1, -1, 4}, {Site::kQuery, 1, 2},
      {Site::kKey, 0, 1, 4},        {Site::kValue, 2, 0},        {Site::kPattern, 1, 1, 5, 2},
      {Site::kPattern, 2, 0},       {Site::kZ, 2, 1, 5},         {Site::kAttentionOut, 1},
      {Site::kResidualMid, 1},      {Site::kMlpOut, 2, -1, -1},  {Site::kMlpOut, 0, -1, 3}};
  std::vector<PatchSet> sets;
  for (const PatchTarget& target : targets)
    if (target.site != Site::kResidualMid || GetParam() != SmallKind::kParallel)
      sets.push_back({target});
  sets.push_back({targets[2], targets[4], targets[10]});  // several at once
  for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kZero,
                                        Replacement::kMean, Replacement::kMeanByPosition}) {
    SCOPED_TRACE(name_of(replacement));
    PatchOptions options;
    options.replacement = replacement;
    const PatchedRuns runs = run_patched(*model_, prompts_, sets, options);
    // Index of an element within one prompt: position and the rest, or head, query and key.
    const auto value_at = [&](const TaskPrompt& prompt, const std::string& tap, std::int64_t at) {
      const bool pattern = tap.ends_with("hook_pattern");
      if (replacement == Replacement::kZero) return 0.0;
      if (replacement == Replacement::kCorrupt)
        return static_cast<double>(corrupt_value(prompt, tap).f32()[at]);
      double sum = 0, count = 0;
      for (const TaskPrompt& other : prompts_) {
        const bool by_position = pattern || replacement == Replacement::kMeanByPosition;
        if (by_position && other.length() != prompt.length()) continue;
        const Tensor value = corrupt_value(other, tap);
        if (by_position) {
          sum += static_cast<double>(value.f32()[at]), count += 1;
          continue;
        }
        const std::int64_t inner = value.shape().inner(1);
        for (std::int64_t t = 0; t < other.length(); ++t)
          sum += static_cast<double>(value.f32()[t * inner + at % inner]), count += 1;
      }
      return sum / count;
    };
    for (std::size_t s = 0; s < sets.size(); ++s) {
      for (const std::size_t i : {1u, 3u, 5u}) {
        const TaskPrompt& prompt = prompts_[i];
        Taps taps;
        for (const PatchTarget& target : sets[s]) {
          const std::string tap = tap_name(target);
          taps.intervene(tap, [=, &value_at, &prompt](const Variable& x) {
            Tensor changed = x.value().clone();
            const Shape& shape = changed.shape();
            const bool pattern = target.site == Site::kPattern;
            for (std::int64_t at = 0; at < changed.elements(); ++at) {
              std::int64_t head = -1, position = at / shape.inner(1), key = -1;
              if (pattern) {
                key = at % shape[3], position = at / shape[3] % shape[2];
                head = at / (shape[3] * shape[2]);
              } else if (shape.rank() == 4) {
                head = at / shape[3] % shape[2];
              }
              const auto fits = [](std::int64_t wanted, std::int64_t is) {
                return wanted < 0 || wanted == is;
              };
              if (fits(target.head, head) && fits(target.position, position) &&
                  fits(target.key, key))
                changed.mutable_f32()[at] = static_cast<float>(value_at(prompt, tap, at));
            }
            return Variable(changed);
          });
        }
        EXPECT_NEAR(runs.patched[s][i], metric_by_hand(prompt, &taps), kTolerance)
            << text_of(sets[s][0]) << " of prompt " << i;
      }
    }
  }
}

TEST(PatchingOfAParallelStream, HasNothingBetweenAttentionAndMlp) {
  EXPECT_THAT(error_of([] {
                run_patched(*small_model(SmallKind::kParallel), small_prompts({9}),
                            {{{Site::kResidualMid, 1}}});
              }),
              HasSubstr("the same stream"));
}

TEST_P(Patching, ReportsProgressAndCanBeStopped) {
  PatchOptions options;
  std::int64_t last = 0, all = 0;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    last = done, all = total;
  };
  run_patched(*model_, prompts_, {{{Site::kZ, 0, 1}}, {{Site::kMlpOut, 1}}}, options);
  EXPECT_EQ(last, all);
  options.progress = [](std::int64_t, std::int64_t) { fail("stop"); };
  EXPECT_EQ(error_of([&] {
              run_patched(*model_, prompts_, {{{Site::kZ, 0, 1}}}, options);
            }),
            "stop");
}

INSTANTIATE_TEST_SUITE_P(Models, Patching,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kParallel, SmallKind::kMixture),
                         [](const auto& parameter) { return text_of(parameter.param); });

TEST(PatchTargets, MustExist) {
  const auto model = small_model(false);
  const std::vector<TaskPrompt> prompts = small_prompts({6});
  const auto error = [&](const PatchTarget& target) {
    return error_of([&] { run_patched(*model, prompts, {{target}}); });
  };
  EXPECT_THAT(error({Site::kZ, 3, 0}), HasSubstr("no layer 3; there are 3"));
  EXPECT_THAT(error({Site::kZ, 0, 3}), HasSubstr("no head 3"));
  EXPECT_THAT(error({Site::kMlpOut, 0, 0}), HasSubstr("no head 0"));
  EXPECT_THAT(error({Site::kZ, 0, 0, 6}), HasSubstr("no position 6"));
  EXPECT_THAT(error({Site::kZ, 0, 0, 0, 0}), HasSubstr("no key 0"));
  EXPECT_THAT(error_of([] { parse_name<Replacement>("noise", "replacement"); }),
              HasSubstr("mean-by-position"));
}

TEST(PatchTargets, HaveNames) {
  EXPECT_EQ(text_of({Site::kZ, 3, 7}), "L3H7");
  EXPECT_EQ(text_of({Site::kMlpOut, 3}), "L3 MLP");
  EXPECT_EQ(text_of({.site = Site::kExpertOut, .layer = 3, .expert = 5}), "L3E5");
  EXPECT_EQ(text_of({Site::kExpertOut, 3, -1, 4}), "L3 expert-out 4");
  EXPECT_EQ(text_of({Site::kPattern, 3, 7, 5, 2}), "L3H7 pattern 5 <- 2");
  EXPECT_EQ(text_of({Site::kEmbedding}), "embedding");
}

}  // namespace
}  // namespace filigree

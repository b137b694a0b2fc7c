// Cells of attention patterns: which there are, their scores, and circuits of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/induction_model_test_support.h"
#include "filigree/circuit.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

constexpr double kTolerance = 3e-4;

Tensor pattern_of(const Model& model, const TaskPrompt& prompt, bool corrupt, std::int64_t layer) {
  Taps taps;
  const std::string tap = fmt::format("blocks.{}.attn.hook_pattern", layer);
  taps.observe(tap);
  model.forward(prompt_ids({&prompt}, corrupt), {.taps = &taps});
  return taps.value(tap);
}

// The metric when `share` of the way of one cell to its replacement is gone.
double changed_by_hand(const Model& model, const TaskPrompt& prompt, const AttentionCell& cell,
                       bool zero, float share) {
  const Tensor corrupt = pattern_of(model, prompt, true, cell.layer);
  Taps taps;
  taps.intervene(fmt::format("blocks.{}.attn.hook_pattern", cell.layer), [&](const Variable& x) {
    Tensor changed = x.value().clone();
    const std::int64_t T = changed.size(2), at = (cell.head * T + cell.query) * T + cell.key;
    const float becomes = zero ? 0.0f : corrupt.f32()[at];
    changed.mutable_f32()[at] += share * (becomes - changed.f32()[at]);
    return Variable(changed);
  });
  if (model.config().gate.on() && share < 0.5f) {  // slopes hold the gates fixed
    for (std::int64_t l = 0; l < model.config().layers; ++l) {
      const std::string tap = fmt::format("blocks.{}.attn.hook_gate", l);
      Taps clean;
      clean.observe(tap);
      model.forward(prompt_ids({&prompt}, false), {.taps = &clean});
      const Tensor gate = clean.value(tap);
      taps.intervene(tap, [gate](const Variable&) { return Variable(gate); });
    }
  }
  const Tensor logits =
      model.forward(prompt_ids({&prompt}, false), {.taps = &taps, .last_position_only = true})
          .value();
  return measure(Metric::kLogitDifference, logits, {&prompt})[0];
}

class AttentionEdges : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  AttentionEdges() {
    if (zero()) options_.replacement = Replacement::kZero;
  }
  static bool gated() { return std::get<0>(GetParam()); }
  static bool zero() { return std::get<1>(GetParam()); }

  std::unique_ptr<Model> model_ = small_model(gated());
  std::vector<TaskPrompt> prompts_ = small_prompts({7, 5, 7});
  PatchOptions options_;
};

TEST_P(AttentionEdges, AreTheCellsThatDiffer) {
  const CellScores scores = attributed_cell_scores(*model_, prompts_, 0, options_);
  for (std::size_t p = 0; p < prompts_.size(); ++p) {
    std::vector<AttentionCell> expected;
    std::size_t causal = 0;
    for (std::int64_t l = 0; l < model_->config().layers; ++l) {
      const Tensor clean = pattern_of(*model_, prompts_[p], false, l);
      const Tensor corrupt = pattern_of(*model_, prompts_[p], true, l);
      const std::int64_t T = prompts_[p].length();
      for (std::int64_t at = 0; at < clean.elements(); ++at) {
        causal += at % T <= at / T % T ? 1 : 0;
        if (clean.f32()[at] != (zero() ? 0.0f : corrupt.f32()[at]))
          expected.push_back({l, at / (T * T), at / T % T, at % T});
      }
    }
    EXPECT_EQ(scores.prompts[p].cells, expected);
    if (gated()) {
      EXPECT_LT(expected.size(), causal * 9 / 10);
    }
  }
}

TEST_P(AttentionEdges, ExactlyAreTheSameAsByHand) {
  const CellScores scores = exact_cell_scores(*model_, prompts_, options_);
  for (std::size_t p = 0; p < prompts_.size(); ++p)
    for (std::size_t c = 0; c < scores.prompts[p].cells.size(); c += 5)
      EXPECT_NEAR(scores.clean[p] - changed_by_hand(*model_, prompts_[p],
                                                    scores.prompts[p].cells[c], zero(), 1.0f),
                  scores.prompts[p].drops[c], kTolerance);
}

TEST_P(AttentionEdges, ByAttributionAreSlopes) {
  const CellScores scores = attributed_cell_scores(*model_, prompts_, 0, options_);
  constexpr float kStep = 4e-3f;
  for (std::size_t p = 0; p < prompts_.size(); ++p)
    for (std::size_t c = 0; c < scores.prompts[p].cells.size(); c += 7) {
      const auto at = [&](float share) {
        return changed_by_hand(*model_, prompts_[p], scores.prompts[p].cells[c], zero(), share);
      };
      const double slope = (at(kStep) - at(-kStep)) / (2 * static_cast<double>(kStep));
      EXPECT_NEAR(scores.prompts[p].drops[c], -slope, 2e-2 * std::abs(slope) + 4e-3);
    }
}

TEST_P(AttentionEdges, CurveEndsWithTheCleanRunAndBeginsWithoutAnyCell) {
  const CellScores scores = attributed_cell_scores(*model_, prompts_, 3, options_);
  const Curve curve = keep_cells(*model_, prompts_, scores, {}, std::nullopt, options_);
  EXPECT_EQ(curve.points.back().kept, scores.most_cells());
  EXPECT_NEAR(curve.points.back().metric, curve.clean.mean, 1e-6);
  // All patterns replaced.
  PatchSet all;
  for (std::int64_t l = 0; l < model_->config().layers; ++l) all.push_back({Site::kPattern, l});
  const PatchedRuns runs = run_patched(*model_, prompts_, {all}, options_);
  EXPECT_NEAR(curve.points.front().metric, estimate(runs.patched[0]).mean, kTolerance);
  // Whoever watches sees all of it, and as it is.
  std::map<std::size_t, double> seen;
  PatchOptions watched = options_;
  watched.point = [&](std::size_t kept, double effect) { seen[kept] = effect; };
  keep_cells(*model_, prompts_, scores, {}, std::nullopt, watched);
  ASSERT_EQ(seen.size(), curve.points.size());
  for (const CurvePoint& point : curve.points) EXPECT_NEAR(seen.at(point.kept), point.effect, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, AttentionEdges, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param) ? "Gated" : "Dense") +
                                  (std::get<1>(parameter.param) ? "Zero" : "Corrupt");
                         });

// The model built by hand needs two cells: where the second head looks from the last position, and
// where the first one looks from there. What the first head writes at the last position changes the
// norm of what is read there, which makes its cell the third.
TEST(InductionModelAttention, NeedsTheCellsOfBothHeads) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(8);
  PatchOptions options;
  options.replacement = Replacement::kZero;
  const CellScores scores = exact_cell_scores(*model, prompts, options);
  const Curve curve = keep_cells(*model, prompts, scores, {}, 0.9, options);
  ASSERT_NE(curve.at(0.9), nullptr);
  EXPECT_LE(curve.at(0.9)->kept, 3u);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const std::int64_t last = prompts[p].length() - 1, repeat = prompts[p].length() - 5;
    std::vector<AttentionCell> found;
    const std::vector<std::size_t> order = scores.prompts[p].order();
    for (std::size_t i = 0; i < 3; ++i) found.push_back(scores.prompts[p].cells[order[i]]);
    // The place after the earlier occurrence of the last token, and from there the occurrence.
    EXPECT_THAT(found, testing::IsSupersetOf({AttentionCell{1, 0, last, repeat},
                                              AttentionCell{0, 0, repeat, repeat - 1}}));
  }
}

TEST(AttentionEdgesOfMeans, AreRefused) {
  const auto model = small_model(false);
  PatchOptions options;
  options.replacement = Replacement::kMean;
  EXPECT_THROW(exact_cell_scores(*model, small_prompts({6}), options), Error);
}

}  // namespace
}  // namespace filigree

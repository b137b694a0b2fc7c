// Circuits: curves, their sizes, and a model built by hand whose circuit is known.
#include "filigree/circuit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/induction_model_test_support.h"
#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

TEST(InductionModel, IsRightAboutTheNextToken) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const TaskCheck check = check_task(score(*model, prompts, Metric::kLogitDifference), prompts);
  EXPECT_EQ(check.clean_accuracy, 1.0);
  EXPECT_TRUE(check.better_than_chance);
  EXPECT_TRUE(check.corruption_matters);
}

TEST(InductionModel, ItsCircuitIsFoundWithEveryMetricAndReplacement) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const std::vector<PatchTarget> heads = all_heads(model->config());
  for (const Metric metric : {Metric::kLogitDifference, Metric::kProbabilityDifference}) {
    PatchOptions options;
    options.metric = metric;
    for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kMean}) {
      options.replacement = replacement;
      SCOPED_TRACE(fmt::format("{} {}", name_of(metric), name_of(replacement)));
      const Importance importance = exact_importance(*model, prompts, heads, options);
      const CircuitCurve curve = keep_most_important(*model, prompts, importance, {}, options);
      const std::vector<PatchTarget> found(curve.order.begin(), curve.order.begin() + 2);
      EXPECT_THAT(found, testing::UnorderedElementsAre(PatchTarget{Site::kZ, 0, 0},
                                                       PatchTarget{Site::kZ, 1, 0}));
      EXPECT_EQ(curve.size_at(0.9), 2u);
      EXPECT_NEAR(curve.points.back().effect, 1, 1e-6);
      EXPECT_EQ(curve.points.size(), heads.size() + 1);
      if (replacement == Replacement::kCorrupt) {
        EXPECT_NEAR(curve.points[0].effect, 0, 1e-4);
      }
    }
  }
}

TEST(InductionModel, ItsCircuitIsFoundGreedily) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  for (const std::size_t candidates : {0u, 3u}) {
    const std::vector<PatchTarget> order =
        greedy_order(*model, prompts, importance, Greedy::kRemoval, candidates);
    ASSERT_EQ(order.size(), 8u);
    const std::vector<PatchTarget> found(order.begin(), order.begin() + 2);
    EXPECT_THAT(found, testing::UnorderedElementsAre(PatchTarget{Site::kZ, 0, 0},
                                                     PatchTarget{Site::kZ, 1, 0}));
    EXPECT_EQ(keep_first(*model, prompts, order, {}).size_at(0.9), 2u);
  }
}

// Each step left the highest metric of all that it could have left.
TEST(GreedyOrder, TakesTheMeasuredBestStep) {
  const auto model = small_model(false, 2);
  const std::vector<TaskPrompt> prompts = small_prompts({8, 8, 6});
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  for (const Greedy greedy : {Greedy::kRemoval, Greedy::kAddition}) {
    std::vector<PatchTarget> order = greedy_order(*model, prompts, importance, greedy, 0);
    const bool removal = greedy == Greedy::kRemoval;
    if (removal) std::reverse(order.begin(), order.end());  // as the steps were taken
    for (std::size_t step = 0; step < order.size(); ++step) {
      std::vector<PatchSet> sets;
      for (std::size_t other = step; other < order.size(); ++other) {
        PatchSet taken(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(step));
        taken.push_back(order[other]);
        PatchSet rest;
        for (const PatchTarget& target : order)
          if (std::find(taken.begin(), taken.end(), target) == taken.end()) rest.push_back(target);
        sets.push_back(removal ? taken : rest);
      }
      const PatchedRuns runs = run_patched(*model, prompts, sets);
      for (const std::vector<double>& alternative : runs.patched)
        EXPECT_GE(estimate(runs.patched[0]).mean, estimate(alternative).mean - 1e-5);
    }
  }
}

TEST(Circuit, SearchesForTheSizeBetweenTheGivenOnes) {
  // The effect is the share kept, so 90 % of 1000 are 900.
  std::vector<std::size_t> asked;
  const Curve curve =
      measured_curve(1000, spread_sizes(1000), 0.9, {},
                     [&](const std::vector<std::size_t>& sizes, const PatchOptions&) {
                       PatchedRuns runs;
                       runs.clean = {1.0}, runs.corrupt = {0.0};
                       for (const std::size_t size : sizes) {
                         asked.push_back(size);
                         runs.patched.push_back({static_cast<double>(size) / 1000});
                       }
                       return runs;
                     });
  EXPECT_EQ(curve.size_at(0.9), 900u);
  EXPECT_NEAR(curve.area(), 0.5, 1e-9);
  EXPECT_LT(asked.size(), 50u);
  for (std::size_t i = 1; i < curve.points.size(); ++i)
    EXPECT_GT(curve.points[i].kept, curve.points[i - 1].kept);
}

TEST(Circuit, AWatchedCurveGrowsPointByPointAndIsTheSame) {
  std::size_t measured = 0;
  const auto run = [&](const std::vector<std::size_t>& sizes, const PatchOptions& options) {
    PatchedRuns runs;
    runs.clean = {1.0}, runs.corrupt = {0.0};
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const double effect = static_cast<double>(sizes[k] * sizes[k]) / 10000;
      runs.patched.push_back({effect});
      ++measured;
      if (options.seen) options.seen(k, {{1.0}, {0.0}, {{effect}}});
    }
    return runs;
  };
  std::vector<std::size_t> sizes(101);
  std::iota(sizes.begin(), sizes.end(), std::size_t{0});
  const Curve whole = measured_curve(100, sizes, 0.9, {}, run);
  std::vector<std::size_t> seen;
  PatchOptions options;
  measured = 0;
  options.point = [&](std::size_t kept, double effect) {
    seen.push_back(kept);
    EXPECT_EQ(seen.size(), measured) << "as soon as it is there";
    EXPECT_NEAR(effect, static_cast<double>(kept * kept) / 10000, 1e-12);
  };
  const Curve watched = measured_curve(100, sizes, 0.9, options, run);
  ASSERT_EQ(watched.points.size(), whole.points.size());
  for (std::size_t i = 0; i < whole.points.size(); ++i) {
    EXPECT_EQ(watched.points[i].kept, whole.points[i].kept);
    EXPECT_EQ(watched.points[i].effect, whole.points[i].effect);
  }
  ASSERT_EQ(seen.size(), 101u);
  EXPECT_GT(seen[3], 60u) << "the whole curve comes roughly first";
}

TEST(Circuit, PointsComeWithTheFirstPromptsAndEndAsTheyStay) {
  const auto model = small_model(true);
  const std::vector<TaskPrompt> prompts = small_prompts({8, 8, 6});  // two batches
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  PatchOptions options;
  std::map<std::size_t, std::vector<double>> seen;
  std::vector<std::size_t> order;
  options.point = [&](std::size_t kept, double effect) {
    seen[kept].push_back(effect);
    order.push_back(kept);
  };
  const CircuitCurve curve = keep_most_important(*model, prompts, importance, {1, 4, 7}, options);
  ASSERT_EQ(seen.size(), curve.points.size());
  for (const CurvePoint& point : curve.points) {
    ASSERT_EQ(seen[point.kept].size(), 2u) << "with the prompts of each length";
    EXPECT_EQ(seen[point.kept].back(), point.effect);
  }
  EXPECT_EQ(std::set(order.begin(), order.begin() + 5).size(), 5u) << "each once, then again";
}

TEST(Circuit, WithoutAnyHeadIsTheCorruptRun) {
  const auto model = small_model(true);
  const std::vector<TaskPrompt> prompts = small_prompts({8, 8, 6});
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  const CircuitCurve curve = keep_most_important(*model, prompts, importance, {4});
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_EQ(curve.points[1].kept, 4u);
  EXPECT_NEAR(curve.points[0].metric, curve.corrupt.mean, 1e-4);
  EXPECT_NEAR(curve.points[2].metric, curve.clean.mean, 1e-6);
}

Curve curve_of(const std::vector<double>& effects) {
  Curve curve;
  for (const double effect : effects) {
    CurvePoint point;
    point.kept = curve.points.size();
    point.effect = effect;
    curve.points.push_back(point);
  }
  return curve;
}

TEST(Circuit, SizeIsWhereTheEffectStaysAboveTheLevel) {
  EXPECT_EQ(curve_of({0, 0.95, 0.5, 0.92, 1.1, 1}).size_at(0.9), 3u);
  EXPECT_EQ(curve_of({0, 0.5, 1}).size_at(0.9), 2u);
  EXPECT_EQ(curve_of({0.95, 0.95, 1}).size_at(0.9), 0u);
  EXPECT_EQ(curve_of({0, 1, 0.8}).size_at(0.9), std::nullopt);
  EXPECT_DOUBLE_EQ(curve_of({0, 1, 1}).area(), 0.75);
}

TEST(Circuit, EffectsAreSharesWithTheErrorOfARatio) {
  PatchedRuns runs;
  runs.clean = {2, 4, 6};
  runs.corrupt = {0, 0, 0};
  runs.patched = {{1, 2, 3}, {3, 2, 1}};
  const std::vector<CurvePoint> points = curve_points({1, 2}, runs);
  EXPECT_DOUBLE_EQ(points[0].effect, 0.5);
  EXPECT_DOUBLE_EQ(points[0].error.value(), 0);  // half of every prompt
  EXPECT_DOUBLE_EQ(points[1].effect, 0.5);
  EXPECT_NEAR(points[1].error.value(), std::sqrt((4 + 0 + 4) / 2.0 / 3.0) / 4, 1e-12);
  runs.corrupt = runs.clean;
  EXPECT_THROW(curve_points({1, 2}, runs), Error);
}

TEST(Circuit, RefusesSizesBeyondTheParts) {
  const auto model = small_model(false, 1);
  const std::vector<TaskPrompt> prompts = small_prompts({6});
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  EXPECT_THROW(keep_most_important(*model, prompts, importance, {4}), Error);
}

}  // namespace
}  // namespace filigree

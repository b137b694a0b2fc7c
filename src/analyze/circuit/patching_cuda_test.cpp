// Analyses of a model on the GPU give what they give on the CPU: every kind of intervention and of
// score, of dense and gated models, closely in f32 and roughly in bf16.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/edge_circuit.h"
#include "analyze/circuit/pass_limits.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "support/check_cuda.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

constexpr double kTolerance = 1e-3;  // relative to the largest number that it is compared with

using Numbers = std::vector<double>;

void expect_close(const Numbers& found, const Numbers& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0.0) << what;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], kTolerance * largest) << what << ", number " << i;
  }
}

// The cosine of the angle between the two, which scaling does not change.
void expect_alike(const Numbers& found, const Numbers& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double product = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    product += found[i] * wanted[i];
    a += found[i] * found[i];
    b += wanted[i] * wanted[i];
  }
  EXPECT_GT(product / std::sqrt(a * b), 0.9) << what;
}

Numbers means_of(const std::vector<Estimate>& drops) {
  Numbers means;
  for (const Estimate& drop : drops) means.push_back(drop.mean);
  return means;
}

Numbers joined(const std::vector<Numbers>& rows) {
  Numbers all;
  for (const Numbers& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

Numbers metrics_of(const Curve& curve) {
  Numbers metrics;
  for (const CurvePoint& point : curve.points) metrics.push_back(point.metric);
  return metrics;
}

void expect_same_runs(const PatchedRuns& found, const PatchedRuns& wanted,
                      const std::string& what) {
  expect_close(found.clean, wanted.clean, what + ", clean");
  expect_close(found.corrupt, wanted.corrupt, what + ", corrupt");
  expect_close(joined(found.patched), joined(wanted.patched), what + ", patched");
}

class CudaPatching : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    FILIGREE_NEEDS_GPU();
    here_ = small_model(GetParam());
    there_ = small_model(GetParam());
    there_->place({DeviceKind::kCuda, DType::kF32});
  }

  std::vector<EdgeSet> single_edges() const {
    std::vector<EdgeSet> sets;
    for (std::int64_t edge = 0; edge < graph().edges(); ++edge) sets.push_back({.edges = {edge}});
    return sets;
  }
  ComponentGraph graph() const { return ComponentGraph(here_->config()); }

  std::unique_ptr<Model> here_, there_;
  std::vector<TaskPrompt> prompts_ = small_prompts({9, 6, 9, 12, 9});
};

std::vector<PatchSet> sets_of_all_sites(const ModelConfig& config) {
  std::vector<PatchSet> sets = {{}, {{Site::kEmbedding}}, {{Site::kEmbedding, 0, -1, 3}}};
  for (const PatchTarget& head : all_heads(config)) sets.push_back({head});
  for (const PatchTarget& mlp : all_mlps(config)) sets.push_back({mlp});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (const Site site :
         {Site::kResidual, Site::kResidualMid, Site::kAttentionOut, Site::kMlpOut})
      for (const std::int64_t position : {-1, 0, 3, 5})
        sets.push_back({{site, layer, -1, position}});
    for (const Site site : {Site::kQuery, Site::kKey, Site::kValue, Site::kZ})
      for (const std::int64_t position : {-1, 4}) sets.push_back({{site, layer, 1, position}});
    sets.push_back({{Site::kPattern, layer}});
    sets.push_back({{Site::kPattern, layer, 2}});
    sets.push_back({{Site::kPattern, layer, 0, 4}});
    sets.push_back({{Site::kPattern, layer, 0, 5, 2}, {Site::kPattern, layer, 0, 5, 3}});
  }
  // Targets that share elements, and some of several layers at once.
  sets.push_back({{Site::kZ, 0, 1}, {Site::kZ, 0, -1, 4}, {Site::kZ, 1}, {Site::kMlpOut, 2}});
  return sets;
}

TEST_P(CudaPatching, RunsOfAllSitesAndReplacements) {
  const std::vector<PatchSet> sets = sets_of_all_sites(here_->config());
  for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kZero,
                                        Replacement::kMean, Replacement::kMeanByPosition}) {
    PatchOptions options;
    options.replacement = replacement;
    expect_same_runs(run_patched(*there_, prompts_, sets, options),
                     run_patched(*here_, prompts_, sets, options),
                     std::string(name_of(replacement)));
  }
}

TEST_P(CudaPatching, RunsInAnyNumberOfPasses) {
  const std::vector<PatchSet> sets = sets_of_all_sites(here_->config());
  const PatchedRuns wanted = run_patched(*here_, prompts_, sets);
  for (const std::int64_t tokens : {1, 60, 500}) {
    PatchOptions options;
    options.tokens_at_once = tokens;
    expect_same_runs(run_patched(*there_, prompts_, sets, options), wanted,
                     std::to_string(tokens) + " tokens at once");
  }
}

TEST_P(CudaPatching, EveryMetric) {
  std::vector<TaskPrompt> prompts = prompts_;
  prompts[1].answers.push_back((prompts[1].answers[0] + 1) % kTestVocabulary);
  prompts[2].wrong.push_back((prompts[2].wrong[0] + 2) % kTestVocabulary);
  std::vector<PatchSet> sets;
  for (const PatchTarget& head : all_heads(here_->config())) sets.push_back({head});
  for (const Metric metric :
       {Metric::kLogitDifference, Metric::kProbabilityDifference, Metric::kKl, Metric::kAccuracy}) {
    PatchOptions options;
    options.metric = metric;
    const PatchedRuns found = run_patched(*there_, prompts, sets, options);
    const PatchedRuns wanted = run_patched(*here_, prompts, sets, options);
    const std::string name(name_of(metric));
    if (metric == Metric::kAccuracy) {  // all of them may be wrong
      EXPECT_EQ(found.clean, wanted.clean);
      EXPECT_EQ(found.patched, wanted.patched);
    } else {
      expect_close(joined(found.patched), joined(wanted.patched), name);
    }
    if (metric == Metric::kAccuracy) continue;
    const std::vector<PatchTarget> heads = all_heads(here_->config());
    expect_close(joined(attributed_importance(*there_, prompts, heads, 2, options).drops),
                 joined(attributed_importance(*here_, prompts, heads, 2, options).drops),
                 name + ", attributed");
  }
}

TEST_P(CudaPatching, AttributionsOfAllSites) {
  std::vector<PatchTarget> targets = {{Site::kEmbedding}};
  for (const PatchSet& set : sets_of_all_sites(here_->config()))
    if (set.size() == 1) targets.push_back(set[0]);
  for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kZero})
    for (const int steps : {0, 2}) {
      PatchOptions options;
      options.replacement = replacement;
      expect_close(joined(attributed_importance(*there_, prompts_, targets, steps, options).drops),
                   joined(attributed_importance(*here_, prompts_, targets, steps, options).drops),
                   std::to_string(steps) + " steps, " + std::string(name_of(replacement)));
    }
}

TEST_P(CudaPatching, GreedyChoicesAndTheirCurve) {
  const Importance importance = exact_importance(*here_, prompts_, all_heads(here_->config()));
  const std::vector<PatchTarget> order =
      greedy_order(*here_, prompts_, importance, Greedy::kRemoval, 3);
  expect_close(metrics_of(keep_first(*there_, prompts_, order, {})),
               metrics_of(keep_first(*here_, prompts_, order, {})), "curve");
}

TEST_P(CudaPatching, SingleEdges) {
  const std::vector<EdgeSet> sets = single_edges();
  const PatchedRuns wanted = run_edges(*here_, graph(), prompts_, sets);
  expect_same_runs(run_edges(*there_, graph(), prompts_, sets), wanted, "in one pass a start");
  PatchOptions options;
  options.tokens_at_once = 200;
  expect_same_runs(run_edges(*there_, graph(), prompts_, sets, options), wanted, "200 tokens");
}

TEST_P(CudaPatching, KeptAndPatchedSetsOfEdges) {
  Random random(5);
  std::vector<EdgeSet> sets = {{.kept = true}};
  for (const std::uint64_t percent : {2u, 30u, 60u, 95u}) {
    EdgeSet patched, kept;
    kept.kept = true;
    for (std::int64_t edge = 0; edge < graph().edges(); ++edge)
      (random.below(100) < percent ? patched : kept).edges.push_back(edge);
    sets.push_back(patched);
    sets.push_back(kept);
  }
  expect_same_runs(run_edges(*there_, graph(), prompts_, sets),
                   run_edges(*here_, graph(), prompts_, sets), "sets");
}

TEST_P(CudaPatching, AttributionsOfEdges) {
  for (const int steps : {0, 3}) {
    const EdgeScores wanted = attributed_edge_scores(*here_, graph(), prompts_, steps);
    const EdgeScores found = attributed_edge_scores(*there_, graph(), prompts_, steps);
    expect_close(means_of(found.drops), means_of(wanted.drops), std::to_string(steps) + " steps");
    expect_close(found.clean, wanted.clean, "clean");
    expect_close(found.corrupt, wanted.corrupt, "corrupt");
  }
}

// The drops of one prompt's cells on both sides, by cell: a difference that rounds to nothing on
// one device is a small one on the other.
std::pair<Numbers, Numbers> drops_by_cell(const CellScores::OfPrompt& found,
                                          const CellScores::OfPrompt& wanted) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>,
           std::pair<double, double>>
      both;
  const auto place = [&](const AttentionCell& c) -> auto& {
    return both[{c.layer, c.head, c.query, c.key}];
  };
  for (std::size_t i = 0; i < found.cells.size(); ++i) place(found.cells[i]).first = found.drops[i];
  for (std::size_t i = 0; i < wanted.cells.size(); ++i)
    place(wanted.cells[i]).second = wanted.drops[i];
  std::pair<Numbers, Numbers> drops;
  for (const auto& [cell, pair] : both) {
    drops.first.push_back(pair.first);
    drops.second.push_back(pair.second);
  }
  return drops;
}

void expect_close(const CellScores& found, const CellScores& wanted, const std::string& what) {
  ASSERT_EQ(found.prompts.size(), wanted.prompts.size());
  for (std::size_t p = 0; p < wanted.prompts.size(); ++p) {
    const auto [a, b] = drops_by_cell(found.prompts[p], wanted.prompts[p]);
    expect_close(a, b, what + ", prompt " + std::to_string(p));
  }
}

TEST_P(CudaPatching, AttentionEdges) {
  for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kZero}) {
    PatchOptions options;
    options.replacement = replacement;
    const std::string name(name_of(replacement));
    const CellScores exact = exact_cell_scores(*here_, prompts_, options);
    expect_close(exact_cell_scores(*there_, prompts_, options), exact, name + ", exact");
    for (const int steps : {0, 2})
      expect_close(attributed_cell_scores(*there_, prompts_, steps, options),
                   attributed_cell_scores(*here_, prompts_, steps, options), name);
    const std::vector<std::size_t> sizes = {0, 5, 40, 200};
    const auto curve = [&](const Model& model) {
      return metrics_of(keep_cells(model, prompts_, exact, sizes, std::nullopt, options));
    };
    expect_close(curve(*there_), curve(*here_), name + ", circuits");
  }
}

TEST_P(CudaPatching, StatesOfSweeps) {
  EXPECT_EQ(SweepKey().add(*there_).value(), SweepKey().add(*here_).value());
  TemporaryFolder folder;
  const std::vector<EdgeSet> sets = single_edges();
  PatchOptions options;
  options.tokens_at_once = 200;
  const PatchedRuns wanted = run_edges(*there_, graph(), prompts_, sets, options);
  for (const bool stops : {true, false}) {
    SweepState state(folder.path() / "state");
    options.state = &state.section("edges", 1);
    const std::size_t steps = state.steps();
    EXPECT_EQ(steps > 0, !stops);
    options.progress = [&](std::int64_t done, std::int64_t total) {
      if (stops && 2 * done > total) fail("stop");
    };
    if (stops) {
      EXPECT_THROW(run_edges(*there_, graph(), prompts_, sets, options), Error);
      state.save();
    } else {
      EXPECT_EQ(run_edges(*there_, graph(), prompts_, sets, options).patched, wanted.patched);
      EXPECT_GT(state.steps(), steps);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaPatching, testing::Bool(),
                         [](const auto& gated) { return gated.param ? "Gated" : "Dense"; });

TEST(CudaPatchingBf16, IsRoughlyTheSame) {
  FILIGREE_NEEDS_GPU();
  const auto here = small_model(false), there = small_model(false);
  there->place({DeviceKind::kCuda, DType::kBf16});
  const std::vector<TaskPrompt> prompts = small_prompts({9, 6, 9, 12});
  const std::vector<PatchTarget> heads = all_heads(here->config());
  const ComponentGraph graph(here->config());
  expect_alike(joined(exact_importance(*there, prompts, heads).drops),
               joined(exact_importance(*here, prompts, heads).drops), "heads");
  expect_alike(joined(attributed_importance(*there, prompts, heads, 2).drops),
               joined(attributed_importance(*here, prompts, heads, 2).drops), "attribution");
  expect_alike(means_of(exact_edge_scores(*there, graph, prompts).drops),
               means_of(exact_edge_scores(*here, graph, prompts).drops), "edges");
  expect_alike(means_of(attributed_edge_scores(*there, graph, prompts, 2).drops),
               means_of(attributed_edge_scores(*here, graph, prompts, 2).drops), "EAP-IG");
  PatchOptions zero;
  zero.replacement = Replacement::kZero;
  const CellScores cells = exact_cell_scores(*there, prompts, zero);
  const CellScores wanted = exact_cell_scores(*here, prompts, zero);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const auto [a, b] = drops_by_cell(cells.prompts[p], wanted.prompts[p]);
    expect_alike(a, b, "cells of prompt " + std::to_string(p));
  }
}

TEST(CudaPatchingLimits, FollowTheMemoryOfTheGpu) {
  FILIGREE_NEEDS_GPU();
  const auto here = small_model(false), there = small_model(false);
  there->place({DeviceKind::kCuda, DType::kF32});
  EXPECT_EQ(device_memory(*here), 0);
  EXPECT_GT(device_memory(*there), 0);
}

}  // namespace
}  // namespace filigree

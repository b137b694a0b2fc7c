// Graphs of models on the GPU: those of the reference, to what f32 sums in another order give.
#include <gtest/gtest.h>

#include "filigree/trace.h"
#include "support/check_cuda.h"
#include "support/check_op.h"
#include "support/golden_graph.h"

namespace filigree {
namespace {

constexpr double kTolerance = 3e-5;

class GraphOnGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    FILIGREE_NEEDS_GPU();
    golden_ =
        std::make_unique<GoldenGraph>(golden_graph(GetParam(), {DeviceKind::kCuda, DType::kF32}));
    ASSERT_EQ(golden_->frozen.device, DeviceKind::kCuda);
  }
  std::unique_ptr<GoldenGraph> golden_;
};

TEST_P(GraphOnGpu, EffectsInfluenceAndScores) {
  const GoldenGraph& g = *golden_;
  EXPECT_LT(relative_error(g.graph.effects.values(), to_doubles(g.tensor("adjacency"))),
            kTolerance);
  const Tensor bias = g.tensor("target_bias"), value = g.tensor("target_value");
  const double scale = *std::max_element(value.f32(), value.f32() + value.elements());
  for (std::int64_t r = 0; r < g.graph.rows(); ++r)
    EXPECT_NEAR(g.graph.bias[static_cast<std::size_t>(r)], bias.f32()[r], kTolerance * scale) << r;
  const PrunedGraph pruned = prune_graph(g.graph);
  const std::vector<float> influence(pruned.influence.begin(), pruned.influence.end());
  EXPECT_LT(relative_error(influence, g.numbers("influence")), kTolerance);
  EXPECT_EQ(pruned.nodes(), g.facts.at("graph").at("kept_nodes").get<std::vector<std::int64_t>>());
  const GraphScores scores = graph_scores(g.graph);
  EXPECT_NEAR(scores.replacement, g.facts.at("graph").at("replacement_score"), kTolerance);
  EXPECT_NEAR(scores.completeness, g.facts.at("graph").at("completeness_score"), kTolerance);
}

TEST_P(GraphOnGpu, LoadingsAndTermsOfAScore) {
  const GoldenGraph& g = *golden_;
  std::vector<SourceReading> pairs;
  for (std::int32_t s = 0; s < g.sources.count(); ++s) pairs.push_back({&g.targets[0].reading, s});
  std::vector<float> maps;
  for (const EdgeLoading& loading :
       head_loadings(g.frozen, g.sources, pairs, {.cells = 3, .maps = true}))
    maps.insert(maps.end(), loading.maps.f32(), loading.maps.f32() + loading.maps.elements());
  EXPECT_LT(relative_error(maps, to_doubles(g.tensor("loading"))), kTolerance);

  const auto& cell = g.facts.at("qk");
  const QkTerms terms = qk_terms(
      g.frozen, g.sources, {cell.at("layer"), cell.at("head"), cell.at("query"), cell.at("key")});
  std::vector<float> all;
  for (std::int64_t u = 0; u <= g.sources.count(); ++u)
    for (std::int64_t v = 0; v <= g.sources.count(); ++v)
      all.push_back(static_cast<float>(terms.term(u, v)));
  EXPECT_LT(relative_error(all, to_doubles(g.tensor("qk_terms"))), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Both, GraphOnGpu, testing::Values("dense", "gated"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace filigree

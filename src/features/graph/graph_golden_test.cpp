// The graphs of tests/golden/clt, as float64 arithmetic in PyTorch gives them: effects, biases,
// loadings, terms of a score, influence, pruning and scores, of the dense and of the gated model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/trace.h"
#include "support/check_op.h"
#include "support/golden_graph.h"

namespace filigree {
namespace {

constexpr double kTolerance = 1e-5;

class GraphGolden : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    for (const char* name : {"dense", "gated"}) graphs_.emplace(name, golden_graph(name));
  }
  static void TearDownTestSuite() { graphs_.clear(); }
  const GoldenGraph& golden() const { return graphs_.at(GetParam()); }

 private:
  static inline std::map<std::string, GoldenGraph> graphs_;
};

TEST_P(GraphGolden, NodesAreThoseOfTheReference) {
  const GoldenGraph& g = golden();
  std::vector<GraphNode> expected;
  for (const char* list : {"sources", "targets"})
    for (const auto& node : g.facts.at(list)) {
      const std::string type = node.at("type");
      if (type == "feature" && std::string(list) == "targets") continue;
      const std::int64_t p = node.at("position");
      if (type == "feature")
        expected.push_back({NodeKind::kFeature, node.at("layer"), p, node.at("feature"), 0.0});
      if (type == "error") expected.push_back({NodeKind::kError, node.at("layer"), p, -1, 0.0});
      if (type == "embedding")
        expected.push_back(
            {NodeKind::kEmbedding, -1, p, g.frozen.ids[static_cast<std::size_t>(p)], 0.0});
      if (type == "logit") expected.push_back({NodeKind::kTarget, 4, p, node.at("token"), 0.0});
    }
  std::vector<GraphNode> found = g.graph.nodes;
  const Tensor act = g.tensor("act");
  for (GraphNode& node : found) {
    if (node.kind == NodeKind::kFeature) {
      EXPECT_NEAR(node.activation,
                  act.f32()[(node.layer * g.frozen.positions + node.position) * kCltFeatures +
                            node.feature],
                  1e-5);
    }
    node.activation = 0.0;
  }
  EXPECT_TRUE(found == expected);
}

TEST_P(GraphGolden, EffectsAndBiases) {
  const GoldenGraph& g = golden();
  EXPECT_LT(relative_error(g.graph.effects.values(), to_doubles(g.tensor("adjacency"))),
            kTolerance);
  const Tensor value = g.tensor("target_value"), bias = g.tensor("target_bias");
  const double scale = *std::max_element(value.f32(), value.f32() + value.elements());
  for (std::int64_t r = 0; r < g.graph.rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    EXPECT_NEAR(g.graph.value[i], value.f32()[r], kTolerance * scale) << r;
    EXPECT_NEAR(g.graph.bias[i], bias.f32()[r], kTolerance * scale) << r;
    double sum = g.graph.bias[i];
    for (std::int64_t s = 0; s < g.graph.sources(); ++s) sum += g.graph.row(r)[s];
    EXPECT_NEAR(sum, g.graph.value[i], kTolerance * scale) << r;
  }
}

TEST_P(GraphGolden, LoadingsOfEveryEdgeToTheFirstLogit) {
  const GoldenGraph& g = golden();
  std::vector<SourceReading> pairs;
  for (std::int32_t s = 0; s < g.sources.count(); ++s) pairs.push_back({&g.targets[0].reading, s});
  const std::vector<EdgeLoading> loadings =
      head_loadings(g.frozen, g.sources, pairs, {.cells = 3, .maps = true});
  std::vector<float> maps;
  for (const EdgeLoading& loading : loadings)
    maps.insert(maps.end(), loading.maps.f32(), loading.maps.f32() + loading.maps.elements());
  EXPECT_LT(relative_error(maps, to_doubles(g.tensor("loading"))), kTolerance);
}

TEST_P(GraphGolden, TermsOfAScore) {
  const GoldenGraph& g = golden();
  const auto& cell = g.facts.at("qk");
  const QkCell at{cell.at("layer"), cell.at("head"), cell.at("query"), cell.at("key")};
  const QkTerms terms = qk_terms(g.frozen, g.sources, at);
  std::vector<float> all;
  double sum = 0.0;
  for (std::int64_t u = 0; u <= g.sources.count(); ++u)
    for (std::int64_t v = 0; v <= g.sources.count(); ++v) {
      all.push_back(static_cast<float>(terms.term(u, v)));
      sum += terms.term(u, v);
    }
  EXPECT_LT(relative_error(all, to_doubles(g.tensor("qk_terms"))), kTolerance);
  EXPECT_NEAR(sum, terms.score, 1e-5);
}

TEST_P(GraphGolden, InfluencePruningAndScores) {
  const GoldenGraph& g = golden();
  const PrunedGraph pruned = prune_graph(g.graph);
  const std::vector<double> influence = g.numbers("influence"), ranks = g.numbers("cumulative");
  const std::vector<float> found(pruned.influence.begin(), pruned.influence.end());
  EXPECT_LT(relative_error(found, influence), kTolerance);
  const std::vector<float> cumulative(pruned.cumulative.begin(), pruned.cumulative.end());
  EXPECT_LT(relative_error(cumulative, ranks), kTolerance);
  EXPECT_EQ(pruned.nodes(), g.facts.at("graph").at("kept_nodes").get<std::vector<std::int64_t>>());
  EXPECT_EQ(std::ssize(pruned.edges), g.facts.at("graph").at("kept_edges").get<std::int64_t>());
  const GraphScores scores = graph_scores(g.graph);
  EXPECT_NEAR(scores.replacement, g.facts.at("graph").at("replacement_score"), kTolerance);
  EXPECT_NEAR(scores.completeness, g.facts.at("graph").at("completeness_score"), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Both, GraphGolden, testing::Values("dense", "gated"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace filigree

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/trace.h"

namespace filigree {
namespace {

// Nodes 0 to 8 are features, 9 an error, 10 an embedding and 11 the target. Of equal weights:
// 11 <- {1, 3, 6, 8}, 3 <- {0, 1, 6}, 1 <- {9, 10}, 0 <- 9. A source stands before its target, so
// that features go by their layers.
AttributionGraph by_hand(bool error = true) {
  AttributionGraph graph;
  for (std::int64_t f = 0; f < 9; ++f) graph.nodes.push_back({NodeKind::kFeature, f, 0, f, 1.0});
  graph.nodes.push_back({NodeKind::kError, 0, 0, -1, 0.0});
  graph.nodes.push_back({NodeKind::kEmbedding, -1, 0, 5, 0.0});
  graph.nodes.push_back({NodeKind::kTarget, 9, 0, 7, 0.0});
  // Every feature has an error of its layer to become when it is removed.
  graph.features = 9, graph.errors = 1, graph.embeddings = 1, graph.targets = 1;
  for (GraphNode& node : graph.nodes)
    if (node.kind == NodeKind::kFeature) node.layer = 0;
  graph.weight = {1.0};
  graph.effects = Tensor::zeros({10, 11});
  const auto edge = [&](std::int64_t row, std::int64_t source) {
    graph.effects.mutable_f32()[row * 11 + source] = source % 2 == 0 ? 1.0f : -1.0f;
  };
  for (const std::int64_t s : {1, 3, 6, 8}) edge(9, s);
  for (const std::int64_t s : {0, 1, 6}) edge(3, s);
  edge(1, error ? 9 : 10);
  edge(1, 10);
  edge(0, error ? 9 : 10);
  return graph;
}

TEST(Influence, SumsUpAllPaths) {
  // 6 and 8 have no inputs; 3 comes before what it reads in this order only by its number.
  const std::vector<double> influence = node_influence(by_hand());
  const double of_1 = 0.25 + 0.25 / 3;
  EXPECT_DOUBLE_EQ(influence[3], 0.25);
  EXPECT_DOUBLE_EQ(influence[1], of_1);
  EXPECT_DOUBLE_EQ(influence[0], 0.25 / 3);
  EXPECT_DOUBLE_EQ(influence[9], of_1 / 2 + 0.25 / 3);
  EXPECT_DOUBLE_EQ(influence[10], of_1 / 2);
  EXPECT_EQ(influence[11], 0.0);
}

TEST(Influence, OfEdgesBeforeAndAfterPruning) {
  const auto found = [](const std::vector<EffectEdge>& edges) {
    std::map<std::pair<std::int64_t, std::int64_t>, double> by_nodes;
    for (const EffectEdge& edge : edges) by_nodes[{edge.target, edge.source}] = edge.influence;
    return by_nodes;
  };
  const auto whole = found(influential_edges(by_hand()));
  EXPECT_NEAR(whole.at({11, 3}), 1.0 / 4, 1e-12);
  EXPECT_NEAR(whole.at({3, 0}), 1.0 / 12, 1e-12);
  EXPECT_NEAR(whole.at({1, 9}), 1.0 / 6, 1e-12);
  EXPECT_NEAR(whole.at({0, 9}), 1.0 / 12, 1e-12);
  // Node 0, the least influential one, goes first, then what has no inputs.
  std::vector<bool> kept(12, true);
  kept[0] = false;
  const auto rest = found(influential_edges(by_hand(), &kept));
  EXPECT_NEAR(rest.at({11, 3}), 1.0 / 4, 1e-12);
  EXPECT_NEAR(rest.at({3, 1}), 1.0 / 8, 1e-12);
  EXPECT_NEAR(rest.at({1, 9}), 3.0 / 16, 1e-12);
  const PrunedGraph pruned = prune_graph(by_hand());
  EXPECT_THAT(pruned.nodes(), testing::ElementsAre(1, 3, 9, 10, 11));
}

TEST(Influence, WithoutErrorsBothScoresAreOne) {
  const GraphScores scores = graph_scores(by_hand(false));
  EXPECT_DOUBLE_EQ(scores.replacement, 1.0);
  EXPECT_DOUBLE_EQ(scores.completeness, 1.0);
  const GraphScores less = graph_scores(by_hand());
  EXPECT_LT(less.replacement, 1.0);
  EXPECT_LT(less.completeness, 1.0);
}

TEST(Influence, SharesOutsideOfRangeAreRefused) {
  EXPECT_THROW(prune_graph(by_hand(), {0.0, 0.9}), Error);
  EXPECT_THROW(prune_graph(by_hand(), {0.5, 1.5}), Error);
}

}  // namespace
}  // namespace filigree

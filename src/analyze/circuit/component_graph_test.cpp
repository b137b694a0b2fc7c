#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/circuit/graph.h"
#include "filigree/error.h"

namespace filigree {
namespace {

using ::testing::ElementsAre;

ComponentGraph graph_of(std::int64_t layers, std::int64_t heads, std::int64_t key_heads) {
  ModelConfig config;
  config.layers = layers, config.heads = heads, config.key_heads = key_heads;
  return ComponentGraph(config);
}

TEST(ComponentGraph, OfGpt2SmallHas32491Edges) {
  const ComponentGraph graph = graph_of(12, 12, 12);
  EXPECT_EQ(graph.edges(), 32491);
  EXPECT_EQ(graph.nodes().size(), 157u);
  EXPECT_EQ(graph.inputs().size(), 445u);
}

TEST(ComponentGraph, CountsKeyHeadsOnce) {
  // q of 4 heads, k and v of 2 key heads: 8 inputs a layer, before 1 and 6 nodes; MLPs; logits.
  EXPECT_EQ(graph_of(2, 4, 2).edges(), 8 * 1 + 5 + 8 * 6 + 10 + 11);
  EXPECT_THROW(graph_of(2, 4, 3), Error);
}

TEST(ComponentGraph, OfAParallelStreamHasMlpsThatDoNotReadTheirLayersHeads) {
  ModelConfig config;
  config.layers = 2, config.heads = 3, config.key_heads = 3;
  const std::int64_t sequential = ComponentGraph(config).edges();
  config.residual = ResidualKind::kParallel;
  const ComponentGraph graph(config);
  EXPECT_EQ(graph.edges(), sequential - 2 * 3);
  const auto before = [&](std::int64_t input) {
    return graph.inputs()[static_cast<std::size_t>(input)].before;
  };
  EXPECT_EQ(before(graph.input(Branch::kMlp, 0)), 1);
  EXPECT_EQ(before(graph.input(Branch::kMlp, 1)), before(graph.input(Branch::kQuery, 1, 0)));
  EXPECT_EQ(before(graph.logits()), 1 + 2 * 4);
  for (std::int64_t number = 0; number < graph.edges(); ++number)
    EXPECT_EQ(graph.number(graph.edge(number)), number);
}

TEST(ComponentGraph, NumbersEdgesOneByOne) {
  for (const std::int64_t key_heads : {1, 2, 4}) {
    const ComponentGraph graph = graph_of(3, 4, key_heads);
    for (std::int64_t number = 0; number < graph.edges(); ++number) {
      const ComponentEdge edge = graph.edge(number);
      EXPECT_EQ(graph.number(edge), number);
      // A node comes before what its reader feeds.
      for (const std::int64_t node : graph.fed_by(edge.input)) EXPECT_LT(edge.node, node);
    }
    EXPECT_THROW(graph.edge(graph.edges()), Error);
    for (std::int64_t node = 0; node < static_cast<std::int64_t>(graph.nodes().size()); ++node)
      for (const std::int64_t input : graph.inputs_of(node))
        EXPECT_THAT(graph.fed_by(input), testing::Contains(node));
  }
}

TEST(ComponentGraph, HasNames) {
  const ComponentGraph graph = graph_of(2, 3, 3);
  EXPECT_EQ(graph.node_text(graph.head_node(1, 2)), "L1H2");
  EXPECT_EQ(graph.node_text(graph.mlp_node(0)), "L0 MLP");
  EXPECT_EQ(graph.edge_text(graph.number({0, graph.logits()})), "input -> logits");
  EXPECT_EQ(graph.edge_text(graph.number({graph.head_node(0, 1), graph.input(Branch::kKey, 1, 0)})),
            "L0H1 -> L1H0 k");
  EXPECT_THROW(graph.number({graph.mlp_node(0), graph.input(Branch::kMlp, 0)}), Error);
  EXPECT_THROW(graph.input(Branch::kValue, 0, 3), Error);
}

TEST(ComponentGraph, PrunesWhatLeadsNowhere) {
  const ComponentGraph graph = graph_of(2, 2, 2);
  const auto edge = [&](std::int64_t node, std::int64_t input) {
    return graph.number({node, input});
  };
  const std::int64_t chain_in = edge(0, graph.input(Branch::kValue, 0, 1));
  const std::int64_t chain_middle = edge(graph.head_node(0, 1), graph.input(Branch::kKey, 1, 0));
  const std::int64_t chain_out = edge(graph.head_node(1, 0), graph.logits());
  const std::int64_t no_source = edge(graph.mlp_node(0), graph.logits());
  const std::int64_t no_end = edge(0, graph.input(Branch::kQuery, 1, 1));
  const std::int64_t direct = edge(0, graph.logits());
  EXPECT_THAT(graph.connected({chain_out, no_source, chain_middle, no_end, chain_in}),
              ElementsAre(chain_out, chain_middle, chain_in));
  EXPECT_THAT(graph.connected({chain_out, chain_middle}), ElementsAre());
  EXPECT_THAT(graph.connected({chain_in, chain_middle}), ElementsAre());
  EXPECT_THAT(graph.connected({direct}), ElementsAre(direct));
  EXPECT_THAT(graph.connected({}), ElementsAre());
}

TEST(ComponentGraph, PrunesThroughSharedKeyHeads) {
  const ComponentGraph graph = graph_of(1, 2, 1);
  const std::int64_t in = graph.number({0, graph.input(Branch::kValue, 0, 0)});
  const std::int64_t out = graph.number({graph.head_node(0, 1), graph.logits()});
  EXPECT_THAT(graph.connected({in, out}), ElementsAre(in, out));
}

}  // namespace
}  // namespace filigree

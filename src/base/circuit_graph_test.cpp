#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "filigree/names.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const CircuitGraph& graph) {
  return filigree::error_of([&] { check_graph(graph); });
}

CircuitGraph small_graph() {
  return {.nodes = {{ComponentKind::kInput},
                    {ComponentKind::kHead, 2, 5},
                    {ComponentKind::kMlp, 2},
                    {ComponentKind::kLogits}},
          .edges = {{0, 1, GraphInput::kQuery, 0.5},
                    {1, 2, GraphInput::kNone, -0.25},
                    {2, 3, GraphInput::kNone, 1}}};
}

TEST(CircuitGraph, NamesAndOrdersNodes) {
  const CircuitGraph graph = small_graph();
  EXPECT_EQ(error_of(graph), "no error");
  EXPECT_EQ(name_of(graph.nodes[0]), "input");
  EXPECT_EQ(name_of(graph.nodes[1]), "L2H5");
  EXPECT_EQ(name_of(graph.nodes[2]), "L2 MLP");
  EXPECT_EQ(name_of(graph.nodes[3]), "logits");
  for (std::size_t i = 1; i < graph.nodes.size(); ++i)
    EXPECT_LT(depth_of(graph.nodes[i - 1]), depth_of(graph.nodes[i]));
}

TEST(CircuitGraph, HasExpertsBesideTheMlps) {
  CircuitGraph graph = small_graph();
  graph.nodes.push_back({.kind = ComponentKind::kExpert, .layer = 2, .expert = 0});
  graph.nodes.push_back({.kind = ComponentKind::kExpert, .layer = 2, .expert = 7});
  graph.edges.push_back({1, 4, GraphInput::kNone, 0.5});
  EXPECT_EQ(error_of(graph), "no error");
  EXPECT_EQ(depth_of(graph.nodes[5]), depth_of(graph.nodes[2]));
  graph.edges.push_back({4, 5, GraphInput::kNone, 0.5});
  EXPECT_THAT(error_of(graph), AllOf(HasSubstr("L2E0 -> L2E7"), HasSubstr("against")));
  graph.edges.pop_back();
  graph.nodes.push_back(graph.nodes[5]);
  EXPECT_THAT(error_of(graph), AllOf(HasSubstr("L2E7"), HasSubstr("twice")));
  graph.nodes.back().expert = -1;
  EXPECT_THAT(error_of(graph), HasSubstr("expert -1"));
}

TEST(CircuitGraph, RefusesWhatCannotBe) {
  CircuitGraph graph = small_graph();
  graph.nodes.push_back({ComponentKind::kMlp, 2});
  EXPECT_THAT(error_of(graph), AllOf(HasSubstr("L2 MLP"), HasSubstr("twice")));
  graph = small_graph();
  graph.edges.push_back({2, 1, GraphInput::kValue, 1});
  EXPECT_THAT(error_of(graph), AllOf(HasSubstr("L2 MLP -> L2H5"), HasSubstr("against")));
  graph = small_graph();
  graph.edges[0].input = GraphInput::kNone;
  EXPECT_THAT(error_of(graph), AllOf(HasSubstr("input -> L2H5"), HasSubstr("query")));
  graph = small_graph();
  graph.edges[2].input = GraphInput::kKey;
  EXPECT_THAT(error_of(graph), HasSubstr("L2 MLP -> logits"));
  graph = small_graph();
  graph.edges[2].score = std::nan("");
  EXPECT_THAT(error_of(graph), HasSubstr("nan"));
  graph = small_graph();
  graph.edges[1].to = 4;
  EXPECT_THAT(error_of(graph), HasSubstr("node 4"));
  graph = small_graph();
  graph.nodes[1].layer = -1;
  EXPECT_THAT(error_of(graph), HasSubstr("layer -1"));
}

TEST(CircuitGraph, KeepsTheStrongestEdgesAndWhatTheyTouch) {
  CircuitGraph graph = small_graph();
  EXPECT_EQ(strongest_edges(graph, graph.edges.size()).nodes, graph.nodes);
  graph.edges[0].score = 0.5, graph.edges[1].score = 2, graph.edges[2].score = -3;
  const CircuitGraph two = strongest_edges(graph, 2);
  EXPECT_EQ(error_of(two), "no error");
  // The input has lost its only edge; the others keep their order.
  ASSERT_EQ(two.edges.size(), 2u);
  EXPECT_EQ(two.nodes, std::vector<Component>(graph.nodes.begin() + 1, graph.nodes.end()));
  EXPECT_EQ(two.edges[0].score, 2);
  EXPECT_EQ(two.edges[1].score, -3);
  EXPECT_EQ(name_of(two.nodes[two.edges[1].to]), "logits");
  EXPECT_TRUE(strongest_edges(graph, 0).nodes.empty());
}

}  // namespace
}  // namespace filigree

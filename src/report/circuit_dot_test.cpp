#include "report/circuit_dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "filigree/error.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

CircuitGraph graph() {
  return {.nodes = {{ComponentKind::kInput},
                    {ComponentKind::kHead, 0, 1},
                    {ComponentKind::kMlp, 0},
                    {ComponentKind::kLogits}},
          .edges = {{0, 1, GraphInput::kKey, 2},
                    {1, 2, GraphInput::kNone, -1},
                    {2, 3, GraphInput::kNone, 0.5}}};
}

TEST(CircuitDot, Escapes) {
  EXPECT_EQ(dot_quoted("plain"), "\"plain\"");
  EXPECT_EQ(dot_quoted("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
  EXPECT_EQ(dot_quoted("two\nlines"), "\"two\\nlines\"");
  EXPECT_EQ(dot_quoted("\x01\xFF"), "\"\\\\x01\\\\xff\"");
  EXPECT_EQ(dot_quoted("\n"), "\"\\n\"");
  EXPECT_EQ(dot_quoted("ναί"), "\"ναί\"");
}

TEST(CircuitDot, HoldsNodesAndEdges) {
  const std::string text = circuit_dot(graph(), "a \"title\"");
  EXPECT_THAT(text, HasSubstr("label=\"a \\\"title\\\"\";"));
  EXPECT_THAT(text, HasSubstr("n1 [label=\"L0H1\", fillcolor=\"#FFFFFF\"];"));
  EXPECT_THAT(text, HasSubstr("n0 -> n1 [headlabel=\"k\", labelfontcolor=\"#D55E00\", "
                              "color=\"#D55E00\", penwidth=4.00, "
                              "style=solid, score=\"2\"];"));
  EXPECT_THAT(text, HasSubstr("n1 -> n2 [color=\"#5B6B80\", penwidth=2.25, style=dashed, "
                              "score=\"-1\"];"));
  CircuitGraph broken = graph();
  broken.edges[0].to = 9;
  EXPECT_THROW(circuit_dot(broken), Error);
}

TEST(CircuitDot, IsReadByGraphviz) {
  if (std::system("command -v dot >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "Graphviz is not installed";
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "circuit.dot").string();
  std::ofstream(file) << circuit_dot(graph(), "odd \" \\ \n \x01 title");
  EXPECT_EQ(std::system(("dot -Tplain '" + file + "' >/dev/null").c_str()), 0);
}

}  // namespace
}  // namespace filigree

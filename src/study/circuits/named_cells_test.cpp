// Names of attention edges, and what is summed under one name.
#include <gtest/gtest.h>

#include "filigree/circuit_study.h"

namespace filigree::study {
namespace {

TaskPrompt prompt_of(std::vector<std::string> tokens, std::vector<std::string> roles) {
  TaskPrompt prompt;
  prompt.clean.resize(tokens.size());
  prompt.tokens = std::move(tokens);
  prompt.roles = std::move(roles);
  return prompt;
}

TEST(NamedCells, OfOnePromptAreCalledByTheirTokens) {
  CellScores scores;
  scores.prompts = {{{{6, 7, 3, 0}, {6, 7, 3, 2}}, {0.5, -0.25}}};
  const std::vector<ScoredCell> cells =
      named_cells(scores, {prompt_of({" John", " a", " the", " the"}, {"S1", "", "", "END"})});
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].cell.name(), "L6H7 ' the' 3 <- ' John'");
  EXPECT_EQ(cells[1].cell.name(), "L6H7 ' the' 3 <- ' the' 2");
  EXPECT_EQ(cells[1].drops, std::vector<double>{-0.25});
}

TEST(NamedCells, OfSeveralPromptsAreSummedByRole) {
  CellScores scores;
  scores.prompts = {{{{6, 7, 3, 0}, {6, 7, 3, 1}, {6, 7, 3, 2}}, {0.5, 0.25, 1.0}},
                    {{{6, 7, 2, 1}, {5, 7, 2, 1}}, {2.0, 4.0}}};
  const std::vector<ScoredCell> cells =
      named_cells(scores, {prompt_of({" John", " the", " the", "."}, {"S1", "", "", "END"}),
                           prompt_of({"x", " Ann", "."}, {"START", "S1", "END"})});
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].cell.name(), "L5H7 END <- S1");
  EXPECT_EQ(cells[0].drops, (std::vector<double>{0.0, 4.0}));
  EXPECT_EQ(cells[1].cell.name(), "L6H7 END <- ' the'");
  EXPECT_EQ(cells[1].drops, (std::vector<double>{1.25, 0.0}));  // both of that token
  EXPECT_EQ(cells[2].cell.name(), "L6H7 END <- S1");
  EXPECT_EQ(cells[2].drops, (std::vector<double>{0.5, 2.0}));  // wherever the role stands
}

}  // namespace
}  // namespace filigree::study

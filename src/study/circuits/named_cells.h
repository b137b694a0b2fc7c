// Attention edges under names that a reader knows: of one prompt by its tokens, of several by the
// roles that the task gives their positions.
#pragma once

#include <string>
#include <vector>

#include "analyze/circuit/attention_edges.h"
#include "base/component.h"

namespace filigree::study {

// A head's edge from a query to a key.
struct NamedCell {
  HeadId head = {};
  std::string query = {}, key = {};  // "END", "' John'"

  std::string name() const;  // "L6H7 END <- IO"
  friend auto operator<=>(const NamedCell&, const NamedCell&) = default;
};

struct ScoredCell {
  NamedCell cell = {};
  std::vector<double> drops = {};  // one a prompt: the sum over its cells of that name
};

// Every cell of the scores, in the order of the names. With one prompt each cell has a name of its
// own; with several, cells of one name are the same edge.
std::vector<ScoredCell> named_cells(const CellScores& scores,
                                    const std::vector<TaskPrompt>& prompts);

}  // namespace filigree::study

// A circuit as a drawing: the heads and MLPs that a task needs and the edges between them, one
// panel a model. Colours tell what an edge goes into (query, key, value), widths how much it
// matters (by the square root, so that one strong edge does not make hairlines of the others),
// dashes that it works against the task.
#pragma once

#include <string>
#include <vector>

#include "base/circuit_graph.h"
#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct CircuitPanel {
  std::string title = {};
  CircuitGraph graph = {};
};

struct CircuitDrawing {
  std::string title = {};
  std::vector<CircuitPanel> panels = {};  // beside each other, with the same rows and widths
  std::string score_label = "|score|";
  std::string caption = {};
};

// Throws Error for a panel without nodes and for graphs that check_graph() refuses.
Figure circuit_graph(const CircuitDrawing& input, const Theme& theme);

}  // namespace filigree::figure

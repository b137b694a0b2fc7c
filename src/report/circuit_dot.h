// A circuit for Graphviz: `dot -Tsvg circuit.dot`. Layers are ranks from the bottom to the top, as
// in the figure; edges carry their score, and what they go into as a colour and a label.
#pragma once

#include <string>
#include <string_view>

#include "filigree/names.h"

namespace filigree {

// The text of a .dot file. Throws Error for graphs that check_graph() refuses.
std::string circuit_dot(const CircuitGraph& graph, std::string_view title = {});

// `text` as a quoted string of the DOT language, shown as it is: quotes and backslashes escaped,
// line breaks as \n, bytes that are no text as \xNN.
std::string dot_quoted(std::string_view text);

}  // namespace filigree

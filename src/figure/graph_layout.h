// Where the nodes of a circuit go and how its edges run around them.
//
// Layers are rows from the bottom to the top, the input below, the logits above; heads stand in
// their layer's row, MLPs in a column to the right, half a row higher, because a layer's MLP reads
// its heads. Heads are ordered so that they stand near what they are connected to. Every edge
// rises, and passes the rows between its ends through the gaps between nodes.
#pragma once

#include <string>
#include <vector>

#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

struct LayerLabel {
  std::int64_t layer = 0;
  double y = 0;  // middle of the row
};

struct GraphLayout {
  Size size = {};
  std::vector<Rect> nodes = {};                // boxes, as the graph's nodes
  std::vector<std::vector<Point>> edges = {};  // lines from the bottom up, as the graph's edges
  std::vector<LayerLabel> layers = {};
};

struct LayoutOptions {
  double width = 516;
  // Graphs that are drawn beside it: all get the same rows at the same heights, as far apart and as
  // many to a layer as the fullest of them needs.
  std::vector<const CircuitGraph*> beside = {};
};

// The graph has been checked (check_graph).
GraphLayout layout_graph(const CircuitGraph& graph, const LayoutOptions& options);

}  // namespace filigree::figure

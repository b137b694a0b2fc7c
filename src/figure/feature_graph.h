// An attribution graph over a prompt: tokens along the bottom, layers upwards, features as labelled
// boxes above their tokens, what features miss as empty ones, predictions on top. Lines between
// tokens are attention: they are coloured and name the head that carries most; lines at one token
// are grey.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

enum class FeatureNodeKind { kEmbedding, kFeature, kError, kOutput };

struct FeatureNode {
  FeatureNodeKind kind = FeatureNodeKind::kFeature;
  std::size_t layer = 0;  // of features and errors
  std::size_t position = 0;
  std::string label = {};
  double influence = 0;
};

struct FeatureEdge {
  std::size_t from = 0, to = 0;  // nodes
  double influence = 0;          // at least 0
  bool against = false;          // it lowers what it goes to
  std::string heads = {};        // between tokens: "L5H3"
};

struct FeatureGraphPanel {
  std::string title = {};
  std::vector<FeatureNode> nodes = {};
  std::vector<FeatureEdge> edges = {};
};

struct FeatureGraphFigure {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::size_t layers = 0;
  std::vector<FeatureGraphPanel> panels = {};  // one below the other
  std::string caption = {};
};

inline constexpr std::size_t kMostFeatureEdges = 600;  // drawn of a panel, the strongest

// Throws Error, naming the panel, for layers, positions and nodes that there are not and influence
// that is negative or not finite.
Figure feature_graph(const FeatureGraphFigure& input, const Theme& theme);

}  // namespace filigree::figure

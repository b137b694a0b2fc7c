// A circuit of attention edges over one prompt: the tokens along the bottom, layers upwards, a line
// from the token that a head reads (in its layer) to the token that it writes to (in the row
// above), MLPs as squares, the answer on top. One panel a model, all with the same rows and the
// same scale, so that what is many looks like many.
//
// Edges of one layer between the same two tokens share a line, whose weight is the sum of theirs.
// Up to kMostLines lines of a panel are drawn, the strongest; the panel says how many edges and
// lines there are and how many of them are drawn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"
#include "figure/token_lines.h"

namespace filigree::figure {

struct TokenMlp {
  std::size_t layer = 0, position = 0;
  double score = 0;
};

struct TokenPanel {
  std::string title = {};
  std::vector<TokenEdge> edges = {};
  std::vector<TokenMlp> mlps = {};
  std::string answer = {};  // a token, at the end of the last position
  std::string note = {};    // beside it
};

struct TokenCircuit {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::vector<std::string> roles = {};  // "IO" of each token, "" for none; none: no roles
  std::size_t layers = 0;
  std::vector<TokenPanel> panels = {};  // two beside each other, further ones below
  std::string score_label = "|score|";
  std::string caption = {};
};

inline constexpr std::size_t kMostLines = 1500;

// Throws Error, naming the panel and the edge, for layers and positions that there are not, keys
// after their query and scores that are not finite.
Figure token_circuit(const TokenCircuit& input, const Theme& theme);

}  // namespace filigree::figure

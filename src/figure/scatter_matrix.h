// Pairs of heads: one small plot for each two of the chosen heads, a point for each causal (query,
// key), its weight in one head against its weight in the other. Below the diagonal the plots, on it
// each head's own distribution, above it the correlations.
#pragma once

#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct ScatterHead {
  std::string name = {};
  std::vector<float> weights = {};  // the same number and order of (query, key) for every head
};

struct ScatterPanel {
  std::string title = {};
  std::vector<ScatterHead> heads = {};
  // heads x heads; NaN where a correlation does not exist (a head that is all zero).
  std::vector<float> pearson = {}, spearman = {};  // spearman may be left out
};

struct ScatterMatrix {
  std::string title = {};
  std::vector<ScatterPanel> panels = {};  // one or two beside each other, further ones below
  double axis_end = 1;  // all axes go from 0 to here; points beyond lie on the edge
  std::string caption = {};
};

// Up to kMostDots points of a plot are drawn one by one; more become a picture of their density, on
// a logarithmic scale, so that the file does not grow with them.
inline constexpr std::size_t kMostDots = 300;

// Throws Error, naming the head, where lengths differ or a weight is not finite.
Figure scatter_matrix(const ScatterMatrix& input, const Theme& theme);

}  // namespace filigree::figure

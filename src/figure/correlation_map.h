// The correlation of every head with every other as one heat map, in an order given by whoever
// clustered the heads. With a second matrix the two models share the map: the first below the
// diagonal, the second above it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/labelled_map.h"
#include "figure/theme.h"

namespace filigree::figure {

struct CorrelationMap {
  std::string title = {};
  std::vector<std::string> names = {};
  // names x names, in [-1, 1]; NaN where a correlation does not exist, which is drawn grey.
  std::vector<float> correlations = {};
  std::vector<float> above = {};  // of the second model, or none
  std::string name = {}, above_name = {};
  std::vector<std::size_t> order = {};  // a permutation of the names; none: as they come
  // Neighbours that belong together, such as layers, in the order drawn: their labels stand for the
  // names, and lines part them. None: every name is written.
  std::vector<AxisGroup> groups = {};
  std::string scale_label = "correlation";
  std::string caption = {};
};

// Throws Error where sizes do not fit, a value lies outside [-1, 1], `order` is no permutation, or
// groups do not hold as many as there are names.
Figure correlation_map(const CorrelationMap& input, const Theme& theme);

}  // namespace filigree::figure

// Heat maps with named rows and columns and, where wanted, a word in every cell: effects of patches
// by layer and head, contributions to a logit, the logit lens, composition of heads. One or more
// maps on a page, on one scale.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/heatmap.h"
#include "figure/theme.h"

namespace filigree::figure {

// Neighbouring rows or columns that belong together. Their label stands in for the single ones
// where the cells are too small for those; a gap, or a line where there is no gap, parts groups.
struct AxisGroup {
  std::string label = {};
  std::size_t count = 0;
};

struct MapAxis {
  std::string name = {};                 // "layer"
  std::vector<std::string> labels = {};  // one a row or column
  std::vector<AxisGroup> groups = {};    // none: one group
  bool gaps = false;                     // between groups, as for a column of another kind
  bool tokens = false;                   // labels are tokens, drawn in their visible form
};

struct MapPanel {
  std::string title = {};
  MapAxis rows = {}, columns = {};      // rows from the top
  std::vector<float> values = {};       // rows x columns; not a number: undefined, drawn grey
  std::vector<std::string> words = {};  // in the cells, as tokens; empty or as many as values
};

struct LabelledMaps {
  std::string title = {};
  std::vector<MapPanel> panels = {};  // beside each other where they fit, else below
  ScaleKind kind = ScaleKind::kDifference;
  double end = 0;  // of the scale; 0: the largest magnitude, rounded up to two digits
  std::string scale_label = {};
  std::string caption = {};
};

// Throws Error, naming the panel, where sizes do not fit, a value is infinite, or a magnitude is
// negative.
Figure labelled_maps(const LabelledMaps& input, const Theme& theme);

}  // namespace filigree::figure

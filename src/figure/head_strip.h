// One head in both models: dense | sparse | difference, with the tokens along the sides.
#pragma once

#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/heatmap.h"
#include "figure/theme.h"

namespace filigree::figure {

struct HeadStrip {
  std::string title = {};  // e.g. "L5H1"
  std::vector<std::string> tokens = {};
  std::string dense_name = "dense", sparse_name = "sparse";
  std::vector<float> dense = {}, sparse = {};  // tokens x tokens, query by query
  ColorScale scale = {};
  std::string scale_label = "attention weight";
  double difference_end = 1;  // the third map goes from -this to +this
  std::string caption = {};
};

// The difference is sparse less dense. Throws Error where sizes do not fit or a value is not
// finite.
Figure head_strip(const HeadStrip& input, const Theme& theme);

}  // namespace filigree::figure

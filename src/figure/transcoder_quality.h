// How well transcoders stand in for the MLPs of their models, layer by layer, a colour a model:
// what is left unexplained, how many features are active, how many never or all too often, how much
// of the loss one layer's features recover, and how often features are active.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

// Each list but the last has a value for every layer.
struct MeasuredTranscoder {
  std::string name = {};
  std::vector<double> nmse = {};
  std::vector<double> active = {};         // features at a token
  std::vector<double> dead = {};           // share of the features
  std::vector<double> dense = {};          // likewise
  std::vector<double> recovered = {};      // share of the loss; empty: not measured
  std::vector<std::int64_t> density = {};  // features in each bin, the last one ending at 1
};

struct TranscoderQuality {
  std::string title = {};
  std::vector<MeasuredTranscoder> transcoders = {};
  int density_steps = 1;                   // bins of a power of ten
  std::vector<std::string> captions = {};  // one paragraph each
};

// Without a measured recovery that chart is left out, and a layer whose recovery is no number is
// left out of it; what is below -25 % or above 125 % stands at the edge. Throws Error, naming the
// transcoder, where lengths differ or another number is not finite.
Figure transcoder_quality(const TranscoderQuality& input, const Theme& theme);

}  // namespace filigree::figure

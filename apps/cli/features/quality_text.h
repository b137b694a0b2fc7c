// Tables of how well features stand in for MLPs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "filigree/features.h"

namespace filigree::cli {

using NamedQuality = std::pair<std::string, FeatureQuality>;

// A line a model; without names for one.
std::string quality_table(const std::vector<NamedQuality>& models);
// A line a layer, with what replacing it alone does where that was measured.
std::string layer_quality_table(const FeatureQuality& quality);
// How many features are active how often.
std::string density_text(const FeatureQuality& quality);

}  // namespace filigree::cli

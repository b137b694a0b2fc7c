// How well transcoders stand in for MLPs, drawn.
#pragma once

#include <filesystem>
#include <vector>

#include "study/features/feature_evaluation.h"
#include "study/figures.h"

namespace filigree::study {

// The ending of the path chooses the format. The recovery of layers is drawn where it was measured.
void save_quality_figure(const std::vector<EvaluatedFeatures>& models,
                         const std::filesystem::path& path, const FigureStyle& style);

}  // namespace filigree::study

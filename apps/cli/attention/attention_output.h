// Where --out of `filigree attention` goes: the one place that knows what each ending makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/attention/attention_figures.h"
#include "filigree/analyze/maps/capture.h"
#include "filigree/analyze/maps/map_file.h"

namespace filigree::cli {

struct OutputPlan {
  std::string path;
  MapKind kind = MapKind::kWeights;
  bool average = false;
  std::vector<std::string> models;
};

// Checks the ending and the size. Throws Error, before any work has been done.
std::unique_ptr<MapFile> open_output(const OutputPlan& plan, const std::vector<HeadId>& heads,
                                     const std::vector<Prompt>& prompts);

// Puts a model's maps into a panel of the grid: those of the first prompt, or the means over all.
void fill_grid(MapGrid& grid, std::size_t panel, const std::string& model,
               const std::vector<HeadId>& heads, const std::vector<Prompt>& prompts, MapKind kind,
               bool average);

}  // namespace filigree::cli

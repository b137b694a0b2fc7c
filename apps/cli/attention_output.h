// Where --out of `filigree attention` goes: the one place that knows what each ending makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyze/capture.h"
#include "analyze/map_file.h"

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

}  // namespace filigree::cli

// Where maps go while models run: files of data, and figures of one prompt or of the mean.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analyze/maps/map_file.h"
#include "filigree/attention_study.h"

namespace filigree::study {

// A file of maps with a series for each model and prompt, or for each model's mean. The ending of
// the path chooses the format. Throws Error for one that is none, and for JSON that would be too
// large.
std::unique_ptr<MapFile> open_map_file(const std::filesystem::path& path, MapKind kind,
                                       bool average, Models models,
                                       const std::vector<HeadId>& heads,
                                       const std::vector<Prompt>& prompts,
                                       const Interventions& interventions = {});

struct MapOutputOptions {
  std::vector<std::filesystem::path> files = {};  // each a figure or data
  MapKind kind = MapKind::kWeights;
  bool average = false;
  FigureStyle style = {};
  GridLayout grid = {};
  std::vector<HeadId> order = {};    // of the maps in figures; those it does not name come last
  Interventions interventions = {};  // of the runs, for what the files say about themselves
};

class MapOutput {
 public:
  // Before any work: throws what open_map_file throws, and RequestError for a figure of several
  // prompts.
  MapOutput(MapOutputOptions options, Models models, const std::vector<HeadId>& heads,
            const std::vector<Prompt>& prompts);

  // Has a model's analysis pass its maps here. Models come in order.
  void watch(std::size_t model, AnalysisPlan& plan);

  // Puts the files in their places. Roles are marked in figures where they are known.
  void finish(std::span<const AnalysedModel> models);

 private:
  void add(std::size_t model, const HeadId& head, std::span<const float> map, std::int64_t length);

  MapOutputOptions options_;
  const std::vector<HeadId>& heads_;
  const std::vector<Prompt>& prompts_;
  std::vector<std::unique_ptr<MapFile>> data_;
  std::vector<std::filesystem::path> figures_;
  figure::AttentionGrid grid_;
  std::int64_t heads_a_layer_ = 0;
  std::vector<float> map_;  // the one at hand
};

}  // namespace filigree::study

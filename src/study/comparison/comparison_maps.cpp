#include <algorithm>

#include "study/comparison/comparison_output.h"

namespace filigree::study {
namespace {

bool contains(const std::vector<HeadId>& heads, const HeadId& head) {
  return std::find(heads.begin(), heads.end(), head) != heads.end();
}

std::vector<std::string> labels_of(Models models) {
  std::vector<std::string> labels;
  for (const LoadedModel& model : models) labels.push_back(model.label());
  return labels;
}

}  // namespace

ComparisonMaps::ComparisonMaps(ComparisonPlan plan, const std::vector<HeadId>& heads,
                               const std::vector<Prompt>& prompts, Models models,
                               std::size_t strip_bytes)
    : plan_(std::move(plan)),
      first_prompt_(prompts[0]),
      models_(models),
      grid_(empty_grid(MapKind::kWeights, labels_of(models))),
      page_(models.size(), heads.size(), prompts),
      kept_(models.size()) {
  const std::size_t count = plan_.strips.empty() ? heads.size() : plan_.strips.size();
  const std::size_t tokens = first_prompt_.ids.size();
  keeps_ = count * tokens * tokens * sizeof(float) <= strip_bytes;
}

void ComparisonMaps::add(std::size_t model, std::span<const HeadMap> maps) {
  page_.add(model, maps);
  for (const HeadMap& map : maps) {
    if (map.prompt != 0) return;
    if (contains(plan_.grid, map.head))
      grid_.panels[model].heads.push_back(
          figure::grid_head(map.head, map.weights, map.length, grid_.scale));
    if (keeps_ && (plan_.strips.empty() || contains(plan_.strips, map.head)))
      kept_[model][map.head].assign(map.weights.begin(), map.weights.end());
  }
}

std::map<HeadId, std::vector<float>> ComparisonMaps::first_maps(std::size_t model,
                                                                std::vector<HeadId> heads) const {
  std::map<HeadId, std::vector<float>> maps;
  if (keeps_) {
    for (const HeadId& head : heads) maps[head] = kept_[model].at(head);
    return maps;
  }
  std::sort(heads.begin(), heads.end());
  capture_maps(models_[model].model(), std::span(&first_prompt_, 1),
               CaptureOptions::of(std::move(heads), MapKind::kWeights),
               [&](std::span<const HeadMap> seen) {
                 for (const HeadMap& map : seen)
                   maps[map.head].assign(map.weights.begin(), map.weights.end());
               });
  return maps;
}

}  // namespace filigree::study

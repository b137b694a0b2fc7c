// A patch at every layer and head, or every layer and position, of a task's runs: models side by
// side, as numbers and as heat maps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/lens/patch_sweep.h"
#include "study/circuits/task_selection.h"
#include "study/figures.h"

namespace filigree::study {

struct PatchRequest {
  TaskSelection task = {};
  std::vector<Site> sites = {Site::kZ};
  std::optional<SweepAxis> by = {};  // none: heads where the site has them
  PatchDirection direction = PatchDirection::kNoising;
  Replacement replacement = Replacement::kCorrupt;  // of noising
  // Only prompts of the commonest length (the shorter of equals), so that positions mean the same.
  bool one_length = false;
};

// Throws RequestError for what does not go together and Error for a task that there is not; for
// callers that want to fail before long work.
void check_request(const PatchRequest& request);

// One site of one model.
struct SweptSite {
  Site site = Site::kZ;
  SweepAxis axis = SweepAxis::kHead;
  PatchSweep sweep = {};
  // Heads as numbers; positions as the tokens that all prompts have there, or numbers.
  std::vector<std::string> columns = {};
  std::vector<std::string> roles = {};  // of positions, that all prompts share; "": none

  // "L3H7", "L3 position -2", "L3 position 4 ' to'", "L3 position -5 S2": of a cell of the sweep's
  // effects.
  std::string place(std::size_t cell) const;
  // Cells by their absolute effect, the strongest first.
  std::vector<std::size_t> order() const;
};

struct SweptModel {
  std::string model = {}, label = {};
  LoadedTask task = {};
  std::vector<TaskPrompt> prompts = {};  // those of the task that were swept
  TaskCheck check = {};
  std::vector<SweptSite> sites = {};  // none when there is no effect to share out
};

struct PatchResult {
  PatchRequest request = {};
  std::vector<SweptModel> models = {};
};

PatchResult sweep_models(const PatchRequest& request, std::span<const LoadedModel> models,
                         const Context& context);

Json to_json(const PatchResult& result);

// A panel a site and model. Nullopt when no model has an effect to draw.
std::optional<figure::LabelledMaps> figure_of(const PatchResult& result);

}  // namespace filigree::study

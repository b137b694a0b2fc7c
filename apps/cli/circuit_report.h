// What `circuit` found in a model, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/circuit_search.h"

namespace filigree::cli {

struct ModelCircuit {
  std::string model, label;
  LoadedTask task;
  TaskCheck check;
  SearchOptions options;
  // Absent when the model is not better than chance or the corruption does nothing.
  std::optional<FoundCircuit> found;

  // The smallest circuit at the level: parts without those that lead nowhere.
  std::optional<std::size_t> size() const;
};

// Sizes side by side with the ratio to the first model, what each model can do, and each one's
// `top` first parts.
std::string circuit_text(const std::vector<ModelCircuit>& circuits, std::size_t top);
Json circuit_json(const ModelCircuit& circuit);
// How many times smaller than the first model's circuit; null where either has none.
Json size_ratio(const ModelCircuit& first, const ModelCircuit& circuit);

}  // namespace filigree::cli

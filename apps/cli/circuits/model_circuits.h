// The circuits of one model: the model and its task loaded once, what it can do checked once, and
// one search for each kind of part.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/circuits/circuit_search.h"

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

// One a kind. Bars tell the kinds apart where there are several. With a state, `section` is the
// model's in it, and there is one kind.
std::vector<ModelCircuit> find_model_circuits(const std::string& name, const std::string& label,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              SweepState* state, const std::string& section,
                                              const Session& session);

}  // namespace filigree::cli

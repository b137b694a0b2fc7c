// What `circuit` found in a model, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/circuit/circuit.h"
#include "apps/cli/session.h"
#include "apps/cli/task_input.h"

namespace filigree::cli {

struct ModelCircuit {
  std::string model, label;
  LoadedTask task;
  TaskCheck check;
  // Absent when the model is not better than chance or the corruption does nothing.
  std::optional<Importance> importance;
  std::optional<CircuitCurve> curve;
  double level = 0.9;

  std::optional<std::size_t> size() const { return curve ? curve->size_at(level) : std::nullopt; }
};

// Sizes side by side with the ratio to the first model, what each model can do, and each one's
// `top` most important heads.
std::string circuit_text(const std::vector<ModelCircuit>& circuits, std::size_t top);
Json circuit_json(const ModelCircuit& circuit);

}  // namespace filigree::cli

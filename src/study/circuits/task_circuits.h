// The circuits of a task in models side by side, for comparisons: heads, edges and attention edges,
// and what the report page and the data say of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/circuit_section.h"
#include "study/circuits/circuit_drawings.h"

namespace filigree::study {

struct TaskCircuits {
  std::vector<CircuitsOfKind> kinds;  // each one circuit a model

  const LoadedTask& task() const { return kinds[0][0].task; }  // as the first model's
  const CircuitsOfKind* find(Parts parts) const;
};

// What is searched for, and how hard.
struct CircuitEffort {
  double level = 0.9;
  int steps = 5;  // of integrated gradients
};

// Heads by exact importance, edges by integrated gradients, attention edges by the gradient of the
// clean run.
TaskCircuits find_task_circuits(const TaskSelection& selection, std::span<const LoadedModel> models,
                                const CircuitEffort& effort, const Context& context);

// The figures of a task, as far as there is something to draw. Runs `models`, those of the
// circuits.
struct TaskFigures {
  std::optional<figure::CircuitCurves> curves = {};
  std::optional<figure::AttentionGrid> grid = {};
  std::optional<figure::CircuitDrawing> drawing = {};
  std::optional<figure::TokenCircuit> tokens = {};  // attention edges over one prompt
};
TaskFigures task_figures(const TaskCircuits& found, std::span<const LoadedModel> models);

// The section of the page, with these figures as SVG.
ReportTask task_section(const TaskCircuits& found, const TaskFigures& figures,
                        const FigureStyle& style);

// Without the scores of the parts, which are far too many for a summary.
Json to_json(const TaskCircuits& found);

}  // namespace filigree::study

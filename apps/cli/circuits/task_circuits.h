// The circuits of a task in models side by side, for `compare`: heads, edges and attention edges,
// and what the report page, the terminal and the data say of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/circuits/circuit_drawings.h"
#include "filigree/report/circuit_section.h"

namespace filigree::cli {

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
// clean run. Shows bars.
TaskCircuits find_task_circuits(const TaskSelection& selection,
                                const std::vector<std::string>& models, const CircuitEffort& effort,
                                const Session& session);

// The figures of a task, as far as there is something to draw. Runs models.
struct TaskFigures {
  std::optional<figure::CircuitCurves> curves = {};
  std::optional<figure::AttentionGrid> grid = {};
  std::optional<figure::CircuitDrawing> drawing = {};
};
TaskFigures task_figures(const TaskCircuits& found);

// The section of the page, with these figures as SVG.
ReportTask task_section(const TaskCircuits& found, const TaskFigures& figures,
                        const FigureStyle& style);

// Sizes side by side.
std::string task_circuits_text(const TaskCircuits& found);
Json task_circuits_json(const TaskCircuits& found);

}  // namespace filigree::cli

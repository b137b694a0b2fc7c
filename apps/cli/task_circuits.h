// The heads that tasks need, of models side by side, and what is drawn and written of them: curves,
// the grid of the circuit's heads, a section of the report page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/circuit/circuit.h"
#include "apps/cli/circuit_figures.h"
#include "apps/cli/session.h"
#include "apps/cli/task_input.h"
#include "report/circuit_section.h"

namespace filigree::cli {

// One model's circuit of heads.
struct HeadCircuit {
  std::string model, label;
  TaskCheck check = {};
  std::size_t prompts = 0;
  // Absent when the model is not better than chance or the corruption does nothing.
  std::optional<CircuitCurve> curve = {};
  double level = 0.9;

  std::optional<std::size_t> size() const { return curve ? curve->size_at(level) : std::nullopt; }
  // The heads of the circuit, the most important first; all of them when the level is not reached.
  std::vector<HeadId> heads() const;
};

struct TaskCircuits {
  LoadedTask task;  // as the first model's tokenizer has it
  std::vector<HeadCircuit> circuits;
};

// Exact importance of every head and the curve of keeping them, for every model. Shows bars.
TaskCircuits find_head_circuits(const TaskSelection& selection,
                                const std::vector<std::string>& models, double level,
                                const Session& session);

// The curve of one model for circuit_curves; `level` gives its size.
figure::EffectCurve effect_curve(const std::string& name, const CircuitCurve& curve, double level);

// Nullopt when no model has a circuit.
std::optional<figure::CircuitCurves> curves_of(const TaskCircuits& found);

// The circuits' heads on the task's first prompt, a panel a model, in order of importance. Nullopt
// when no model has a circuit.
std::optional<figure::AttentionGrid> circuit_grid(const TaskCircuits& found);

// The section of the page, with these figures (as SVG) as far as there are any.
struct SectionFigures {
  std::optional<figure::CircuitCurves> curves = {};
  std::optional<figure::AttentionGrid> grid = {};
  std::optional<figure::CircuitDrawing> drawing = {};
};
ReportTask task_section(const TaskCircuits& found, const SectionFigures& figures,
                        const FigureStyle& style);

// Sizes side by side.
std::string task_circuits_text(const TaskCircuits& found);
Json task_circuits_json(const TaskCircuits& found);

}  // namespace filigree::cli

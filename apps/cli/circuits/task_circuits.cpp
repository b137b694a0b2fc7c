#include "apps/cli/circuits/task_circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/cli/circuits/circuit_report.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/table.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

// What the section says of each model, since a circuit of nothing means nothing.
std::string ability_text(const TaskCheck& check) {
  std::string text = fmt::format("accuracy {:.0f} % (chance {:.0f} %)", 100 * check.clean_accuracy,
                                 100 * check.chance);
  if (!check.better_than_chance) return text + ", not better than chance: no circuit";
  if (!check.corruption_matters) return text + ", the corruption changes nothing: no circuit";
  return text;
}

}  // namespace

const CircuitsOfKind* TaskCircuits::find(Parts parts) const {
  for (const CircuitsOfKind& circuits : kinds)
    if (circuits[0].options.parts == parts) return &circuits;
  return nullptr;
}

TaskCircuits find_task_circuits(const TaskSelection& selection,
                                const std::vector<std::string>& models, const CircuitEffort& effort,
                                const Session& session) {
  std::vector<SearchOptions> kinds(3);
  kinds[0].parts = Parts::kHeads, kinds[0].every_size = false;
  kinds[1].parts = Parts::kEdges, kinds[1].method = Method::kIntegrated;
  // Where a head looks matters little when what it finds there stays: other cells become zero.
  kinds[2].parts = Parts::kAttentionEdges, kinds[2].method = Method::kAttribution;
  kinds[2].replacement = Replacement::kZero;
  for (SearchOptions& kind : kinds) kind.level = effort.level, kind.steps = effort.steps;
  const std::vector<std::string> labels = short_names(models);
  TaskCircuits found;
  found.kinds.resize(kinds.size());
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<ModelCircuit> circuits =
        find_model_circuits(models[m], labels[m], selection, kinds, nullptr, "", session);
    for (std::size_t k = 0; k < kinds.size(); ++k) found.kinds[k].push_back(std::move(circuits[k]));
  }
  return found;
}

TaskFigures task_figures(const TaskCircuits& found) {
  TaskFigures figures;
  figures.curves = curves_of(found.kinds);
  if (const CircuitsOfKind* heads = found.find(Parts::kHeads)) figures.grid = grid_of(*heads);
  if (const CircuitsOfKind* edges = found.find(Parts::kEdges)) figures.drawing = drawing_of(*edges);
  return figures;
}

ReportTask task_section(const TaskCircuits& found, const TaskFigures& figures,
                        const FigureStyle& style) {
  CircuitSection section;
  const LoadedTask& task = found.task();
  section.task = task_title(task);
  section.description = task.description;
  section.level = found.kinds[0][0].options.level;
  section.facts = {{"corruption", task.prompts.corruption},
                   {"metric", std::string(name_of(task.metric))},
                   {"prompts", std::to_string(task.prompts.prompts.size())}};
  for (const ModelCircuit& circuit : found.kinds[0]) {
    section.models.push_back(circuit.label);
    section.facts.emplace_back(circuit.label, ability_text(circuit.check));
  }
  for (const CircuitsOfKind& circuits : found.kinds) {
    CircuitSize kind = {std::string(plural_of(circuits[0].options.parts)), {}, {}};
    for (const ModelCircuit& circuit : circuits) {
      kind.sizes.push_back(circuit.size());
      kind.of.push_back(
          circuit.found ? static_cast<std::size_t>(std::lround(circuit.found->part_count)) : 0);
    }
    const bool any = std::any_of(circuits.begin(), circuits.end(),
                                 [](const ModelCircuit& circuit) { return circuit.found; });
    if (any) section.sizes.push_back(std::move(kind));
  }
  if (figures.curves)
    section.figures.push_back({"Explained effect", "against the number of parts kept",
                               circuit_curves_svg(*figures.curves, style)});
  if (figures.grid)
    section.figures.push_back({"Heads of the circuits", "in order of importance",
                               attention_grid_svg(*figures.grid, style)});
  if (figures.drawing)
    section.figures.push_back({"Edges of the circuits", "and the parts they connect",
                               circuit_graph_svg(*figures.drawing, style)});
  return circuit_section(section);
}

std::string task_circuits_text(const TaskCircuits& found) {
  std::vector<Table::Column> columns = {{"model"}, {"accuracy", Align::kRight}};
  for (const CircuitsOfKind& circuits : found.kinds) {
    columns.push_back({std::string(plural_of(circuits[0].options.parts)), Align::kRight});
    columns.push_back({"ratio", Align::kRight});
  }
  Table table(columns);
  for (std::size_t m = 0; m < found.kinds[0].size(); ++m) {
    const ModelCircuit& model = found.kinds[0][m];
    std::vector<std::string> row = {printable(model.label),
                                    fmt::format("{:.1f} %", 100 * model.check.clean_accuracy)};
    for (const CircuitsOfKind& circuits : found.kinds) {
      row.push_back(size_text(circuits[m]));
      row.push_back(ratio_text(circuits[0], circuits[m]));
    }
    table.add(row);
  }
  return fmt::format("{}: {}; parts for {:g} % of the effect\n",
                     printable(found.task().prompts.task), found.task().description,
                     100 * found.kinds[0][0].options.level) +
         table.text();
}

Json task_circuits_json(const TaskCircuits& found) {
  Json kinds = Json::array();
  for (const CircuitsOfKind& circuits : found.kinds)
    kinds.push_back(circuits_json(circuits, Scores::kLeftOut));
  const ModelCircuit& first = found.kinds[0][0];
  return {{"task", first.task.prompts.task}, {"level", first.options.level}, {"kinds", kinds}};
}

}  // namespace filigree::cli

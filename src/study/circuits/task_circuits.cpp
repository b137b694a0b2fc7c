#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "filigree/circuit_study.h"

namespace filigree::study {
namespace {

// What the section says of each model, since a circuit of nothing means nothing.
std::string ability_text(const TaskCheck& check) {
  std::string text = fmt::format("accuracy {:.0f} % (chance {:.0f} %)", 100 * check.clean_accuracy,
                                 100 * check.chance);
  if (!check.enough_prompts) return text + ", too few prompts to tell: no circuit";
  if (!check.better_than_chance) return text + ", not better than chance: no circuit";
  if (!check.corruption_matters) return text + ", the corruption changes nothing: no circuit";
  return text;
}

// In the theme asked for; the light one has a dark twin, for pages that are looked at in the dark.
ReportFigure page_figure(const std::string& title, const std::string& caption,
                         const FigureInput& input, const FigureStyle& style) {
  ReportFigure figure = {title, caption, figure_svg(input, style), {}};
  if (style.theme == FigureTheme::kLight) {
    FigureStyle dark = style;
    dark.theme = FigureTheme::kDark;
    figure.dark_svg = figure_svg(input, dark);
  }
  return figure;
}

}  // namespace

const CircuitsOfKind* TaskCircuits::find(Parts parts) const {
  for (const CircuitsOfKind& circuits : kinds)
    if (circuits[0].options.parts == parts) return &circuits;
  return nullptr;
}

TaskCircuits find_task_circuits(const TaskSelection& selection, Models models,
                                const CircuitEffort& effort, const Context& context) {
  std::vector<SearchOptions> kinds(3);
  kinds[0].parts = Parts::kHeads, kinds[0].every_size = false;
  kinds[1].parts = Parts::kEdges;
  // Where a head looks matters little when what it finds there stays: other cells become zero.
  kinds[2].parts = Parts::kAttentionEdges;
  kinds[2].replacement = Replacement::kZero;
  for (SearchOptions& kind : kinds) {
    kind.method = usual_method(kind.parts);
    kind.level = effort.level, kind.steps = effort.steps;
  }
  TaskCircuits found;
  found.kinds.resize(kinds.size());
  const TaskSelection task = choose_text(selection, models);
  for (const LoadedModel& model : models) {
    std::vector<ModelCircuit> circuits = find_model_circuits(model, task, kinds, context);
    for (std::size_t k = 0; k < kinds.size(); ++k) found.kinds[k].push_back(std::move(circuits[k]));
  }
  return found;
}

TaskFigures task_figures(const TaskCircuits& found, Models models) {
  TaskFigures figures;
  figures.curves = curves_of(found.kinds);
  if (const CircuitsOfKind* heads = found.find(Parts::kHeads))
    figures.grid = grid_of(*heads, models);
  if (const CircuitsOfKind* edges = found.find(Parts::kEdges)) figures.drawing = drawing_of(*edges);
  if (const CircuitsOfKind* cells = found.find(Parts::kAttentionEdges))
    figures.tokens = token_circuit_of(*cells, models);
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
    section.heads.emplace_back();
    if (circuit.found)
      for (const HeadId& head : circuit.found->heads)
        section.heads.back().push_back(head_name(head));
    section.models.push_back(circuit.label);
    section.facts.emplace_back(circuit.label, ability_text(circuit.check));
  }
  for (const CircuitsOfKind& circuits : found.kinds) {
    CircuitSize kind = {.parts = std::string(plural_of(circuits[0].options.parts))};
    for (const ModelCircuit& circuit : circuits) {
      kind.sizes.push_back(circuit.size());
      kind.without.push_back(circuit.found ? std::optional(circuit.found->empty_circuit().effect)
                                           : std::nullopt);
      kind.carried.push_back(circuit.carried());
      kind.of.push_back(
          circuit.found ? static_cast<std::size_t>(std::lround(circuit.found->part_count)) : 0);
    }
    const bool any = std::any_of(circuits.begin(), circuits.end(),
                                 [](const ModelCircuit& circuit) { return circuit.found; });
    if (any) section.sizes.push_back(std::move(kind));
  }
  if (figures.tokens)
    section.figures.push_back(page_figure("Attention edges of the circuits",
                                          "over the first prompt", &*figures.tokens, style));
  if (figures.curves)
    section.figures.push_back(page_figure("Explained effect", "against the number of parts kept",
                                          &*figures.curves, style));
  if (figures.grid)
    section.figures.push_back(
        page_figure("Heads of the circuits", "in order of importance", &*figures.grid, style));
  if (figures.drawing)
    section.figures.push_back(page_figure("Edges of the circuits", "and the parts they connect",
                                          &*figures.drawing, style));
  return circuit_section(section);
}

Json to_json(const TaskCircuits& found) {
  Json kinds = Json::array();
  for (const CircuitsOfKind& circuits : found.kinds)
    kinds.push_back(to_json(circuits, Scores::kLeftOut));
  const ModelCircuit& first = found.kinds[0][0];
  return {{"task", first.task.prompts.task}, {"level", first.options.level}, {"kinds", kinds}};
}

}  // namespace filigree::study

#include "apps/cli/task_circuits.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/capture.h"
#include "analyze/circuit/importance.h"
#include "apps/cli/input.h"
#include "apps/cli/patch_progress.h"
#include "apps/cli/table.h"
#include "apps/cli/token_input.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

HeadCircuit find_one(const std::string& name, const std::string& label, const LoadedTask& task,
                     double level, const Session& session) {
  const std::vector<TaskPrompt>& prompts = task.prompts.prompts;
  const std::unique_ptr<Model> model = load_model(name);
  HeadCircuit found = {.model = name, .label = label, .prompts = prompts.size(), .level = level};
  found.check = check_task(
      score(*model, prompts, task.metric, [](std::size_t) { throw_if_interrupted(); }), prompts);
  if (!found.check.better_than_chance || !found.check.corruption_matters) return found;
  PatchOptions options;
  options.metric = task.metric;
  const std::string what = fmt::format("{} {}", label, task.prompts.task);
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()),
                                                 with_bar(options, what + " heads", session));
  found.curve = keep_most_important(*model, prompts, importance, {},
                                    with_bar(options, what + " curve", session));
  return found;
}

std::string size_text(const HeadCircuit& circuit) {
  if (!circuit.curve) return "none claimed";
  const std::optional<std::size_t> size = circuit.size();
  return size ? std::to_string(*size) : "level not reached";
}

// What the section says of each model, since a circuit of nothing means nothing.
std::string ability_text(const HeadCircuit& circuit) {
  std::string text = fmt::format("accuracy {:.0f} % (chance {:.0f} %)",
                                 100 * circuit.check.clean_accuracy, 100 * circuit.check.chance);
  if (!circuit.check.better_than_chance) return text + ", not better than chance: no circuit";
  if (!circuit.check.corruption_matters)
    return text + ", the corruption changes nothing: no circuit";
  return text;
}

}  // namespace

std::vector<HeadId> HeadCircuit::heads() const {
  std::vector<HeadId> heads;
  if (!curve) return heads;
  const std::size_t count = size().value_or(curve->order.size());
  for (std::size_t i = 0; i < count; ++i)
    heads.push_back({curve->order[i].layer, curve->order[i].head});
  return heads;
}

TaskCircuits find_head_circuits(const TaskSelection& selection,
                                const std::vector<std::string>& models, double level,
                                const Session& session) {
  const std::vector<std::string> labels = short_names(models);
  TaskCircuits found;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const ModelConfig config = read_model_config(model_folder(models[m]));
    LoadedTask task = load_task(selection, open_tokenizer(model_folder(models[m]).string()),
                                &config, session.options().seed);
    found.circuits.push_back(find_one(models[m], labels[m], task, level, session));
    if (m == 0) found.task = std::move(task);
  }
  return found;
}

figure::EffectCurve effect_curve(const std::string& name, const CircuitCurve& curve, double level) {
  figure::EffectCurve result = {.name = name};
  for (const CurvePoint& point : curve.points) {
    result.kept.push_back(static_cast<double>(point.kept));
    result.effect.push_back(point.effect);
    result.error.push_back(point.error);
  }
  if (const std::optional<std::size_t> size = curve.size_at(level))
    result.size = static_cast<double>(*size);
  return result;
}

std::optional<figure::CircuitCurves> curves_of(const TaskCircuits& found) {
  figure::CircuitCurves curves;
  curves.title = printable(found.task.prompts.task);
  curves.level = found.circuits[0].level;
  figure::EffectChart chart = {.unit = "heads"};
  for (const HeadCircuit& circuit : found.circuits)
    if (circuit.curve)
      chart.curves.push_back(effect_curve(circuit.label, *circuit.curve, circuit.level));
  if (chart.curves.empty()) return std::nullopt;
  curves.charts = {std::move(chart)};
  curves.caption = fmt::format(
      "Heads kept in order of importance, all others with the values of the corrupt prompt. "
      "Metric: "
      "{}, {} prompts; bands: one standard error.",
      name_of(found.task.metric), found.circuits[0].prompts);
  return curves;
}

std::optional<figure::AttentionGrid> circuit_grid(const TaskCircuits& found) {
  figure::AttentionGrid grid;
  const TaskPrompt& example = found.task.prompts.prompts[0];
  std::string metric;
  for (const HeadCircuit& circuit : found.circuits) {
    const std::vector<HeadId> order = circuit.heads();
    if (order.empty()) continue;
    const Tokenizer tokenizer = open_tokenizer(model_folder(circuit.model).string());
    // The same prompt may be other tokens to another model.
    Prompt prompt = {tokenizer.encode(example.text.clean), {}};
    const std::unique_ptr<Model> model = load_model(circuit.model, {.warn_about_values = false});
    std::vector<HeadId> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    figure::GridPanel panel = {
        fmt::format("{}: {} head{}", circuit.label, order.size(), order.size() == 1 ? "" : "s"),
        std::vector<figure::GridHead>(order.size())};
    capture_maps(*model, std::span(&prompt, 1), CaptureOptions::of(sorted, MapKind::kWeights),
                 [&](std::span<const HeadMap> maps) {
                   for (const HeadMap& map : maps) {
                     const auto place = std::find(order.begin(), order.end(), map.head);
                     panel.heads[static_cast<std::size_t>(place - order.begin())] =
                         map_of_head(map.head, map.weights, map.length);
                   }
                 });
    grid.panels.push_back(std::move(panel));
    metric += fmt::format("{}{} {:.3f} ({})", metric.empty() ? "" : ", ",
                          name_of(found.task.metric), circuit.check.clean.mean, circuit.label);
  }
  if (grid.panels.empty()) return std::nullopt;
  grid.title = fmt::format("Heads that explain {:g} % of the task {}",
                           100 * found.circuits[0].level, printable(found.task.prompts.task));
  grid.prompt = "Prompt: " + example.text.clean;
  grid.metric = metric + "; the most important heads first";
  return grid;
}

ReportTask task_section(const TaskCircuits& found, const SectionFigures& figures,
                        const FigureStyle& style) {
  CircuitSection section;
  section.task = printable(found.task.prompts.task);
  section.description = found.task.description;
  section.level = found.circuits[0].level;
  section.facts = {{"corruption", found.task.prompts.corruption},
                   {"metric", std::string(name_of(found.task.metric))},
                   {"prompts", std::to_string(found.circuits[0].prompts)}};
  CircuitSize heads = {"heads", {}, {}};
  for (const HeadCircuit& circuit : found.circuits) {
    section.models.push_back(circuit.label);
    section.facts.emplace_back(circuit.label, ability_text(circuit));
    heads.sizes.push_back(circuit.size());
    heads.of.push_back(circuit.curve ? circuit.curve->order.size() : 0);
  }
  const bool any = std::any_of(found.circuits.begin(), found.circuits.end(),
                               [](const HeadCircuit& circuit) { return circuit.curve; });
  if (any) section.sizes = {heads};
  if (figures.curves)
    section.figures.push_back({"Explained effect", "against the number of parts kept",
                               circuit_curves_svg(*figures.curves, style)});
  if (figures.grid)
    section.figures.push_back({"Heads of the circuits", "in order of importance",
                               attention_grid_svg(*figures.grid, style)});
  if (figures.drawing)
    section.figures.push_back({"The circuit", "its parts and the edges between them",
                               circuit_graph_svg(*figures.drawing, style)});
  return circuit_section(section);
}

std::string task_circuits_text(const TaskCircuits& found) {
  Table table({{"model"},
               {"accuracy", Align::kRight},
               {fmt::format("heads for {:g} %", 100 * found.circuits[0].level), Align::kRight},
               {"ratio", Align::kRight}});
  const std::optional<std::size_t> first = found.circuits[0].size();
  for (const HeadCircuit& circuit : found.circuits) {
    const std::optional<std::size_t> size = circuit.size();
    const bool ratio = &circuit != &found.circuits[0] && first && size && *size > 0;
    table.add(
        {printable(circuit.label), fmt::format("{:.1f} %", 100 * circuit.check.clean_accuracy),
         size_text(circuit),
         ratio ? fmt::format("{:.2f}x", static_cast<double>(*first) / static_cast<double>(*size))
               : ""});
  }
  return fmt::format("{}: {}\n", printable(found.task.prompts.task), found.task.description) +
         table.text();
}

Json task_circuits_json(const TaskCircuits& found) {
  Json models = Json::array();
  for (const HeadCircuit& circuit : found.circuits) {
    Json heads = Json::array(), curve = Json::array();
    for (const HeadId& head : circuit.heads()) heads.push_back(head_name(head));
    if (circuit.curve)
      for (const CurvePoint& point : circuit.curve->points)
        curve.push_back(
            {{"kept", point.kept}, {"effect", point.effect}, {"standard_error", point.error}});
    const std::optional<std::size_t> size = circuit.size();
    models.push_back({{"model", circuit.model},
                      {"check", check_json(circuit.check)},
                      {"size", size ? Json(*size) : Json()},
                      {"heads", heads},
                      {"curve", curve}});
  }
  return {{"task", found.task.prompts.task},
          {"corruption", found.task.prompts.corruption},
          {"metric", name_of(found.task.metric)},
          {"level", found.circuits[0].level},
          {"models", models}};
}

}  // namespace filigree::cli

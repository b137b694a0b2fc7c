#include "filigree/study/circuits/model_circuits.h"

#include <fmt/format.h>

#include "filigree/base/strings.h"

namespace filigree::study {
namespace {

// A model's part of the state, where there is a state.
struct KeptWork {
  SweepState* state = nullptr;
  std::string section = {};
};

std::vector<ModelCircuit> search_kinds(const LoadedModel& model, const TaskSelection& selection,
                                       std::span<const SearchOptions> kinds, const KeptWork& kept,
                                       const Context& context) {
  ModelCircuit checked;
  checked.model = model.name(), checked.label = model.label();
  checked.task = load_task(selection, model, context);
  checked.check = check_ability(model, checked.task.prompts.prompts, checked.task.metric, context);
  std::vector<ModelCircuit> circuits;
  for (const SearchOptions& options : kinds) {
    ModelCircuit& circuit = circuits.emplace_back(checked);
    circuit.options = options;
    if (!is_able(checked.check)) continue;
    SweepSection* section = nullptr;
    if (kept.state != nullptr)
      section =
          &kept.state->section(kept.section, search_key(model.model(), circuit.task, options));
    if (section != nullptr && section->steps() > 0)
      context.say(
          fmt::format("{}: goes on after {} steps", printable(model.label()), section->steps()));
    const std::string what = kinds.size() == 1
                                 ? model.label()
                                 : fmt::format("{} {} {}", model.label(), circuit.task.prompts.task,
                                               plural_of(options.parts));
    circuit.found = search_circuit(model.model(), circuit.task, options, what, section, context);
  }
  return circuits;
}

CircuitsOfKind find_all(const CircuitRequest& request, std::span<const LoadedModel> models,
                        SweepState* state, const Context& context) {
  CircuitsOfKind circuits;
  for (std::size_t m = 0; m < models.size(); ++m)
    circuits.push_back(search_kinds(models[m], request.task, std::span(&request.search, 1),
                                    {state, fmt::format("model {}", m + 1)}, context)
                           .front());
  return circuits;
}

Json place_json(const PatchTarget& target) {
  return {{"layer", target.layer}, {"head", target.head < 0 ? Json() : Json(target.head)}};
}

Json place_json(const NamedEdge& edge) { return {{"from", edge.from}, {"to", edge.to}}; }

Json place_json(const AttentionCell& cell) {
  return {{"layer", cell.layer}, {"head", cell.head}, {"query", cell.query}, {"key", cell.key}};
}

Json scores_json(const FoundCircuit& found) {
  Json scores = Json::array();
  for (const CircuitPart& part : found.parts) {
    Json entry = {{"part", part.name}};
    entry.update(std::visit([](const auto& place) { return place_json(place); }, part.place));
    entry["drop"] = part.drop.mean;
    entry["standard_error"] = part.drop.error;
    scores.push_back(std::move(entry));
  }
  return scores;
}

// Of each prompt: layer, head, query, key, drop.
Json cells_json(const CellScores& scores) {
  Json prompts = Json::array();
  for (const CellScores::OfPrompt& prompt : scores.prompts) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < prompt.cells.size(); ++i) {
      const AttentionCell& cell = prompt.cells[i];
      cells.push_back({cell.layer, cell.head, cell.query, cell.key, prompt.drops[i]});
    }
    prompts.push_back(std::move(cells));
  }
  return prompts;
}

Json published_json(const FoundCircuit& found) {
  if (!found.agreement) return nullptr;
  const Agreement& a = *found.agreement;
  return {{"source", found.published->source},
          {"parts", a.published},
          {"kept", a.kept},
          {"common", a.common},
          {"precision", a.precision},
          {"recall", a.recall},
          {"roc_area", a.area}};
}

Json curve_json(const Curve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve.points)
    points.push_back({{"kept", point.kept},
                      {"parts", point.parts},
                      {"metric", point.metric},
                      {"effect", point.effect},
                      {"standard_error", point.error}});
  return points;
}

}  // namespace

std::optional<std::size_t> ModelCircuit::size() const {
  const CurvePoint* point = found ? found->curve.at(options.level) : nullptr;
  return point == nullptr ? std::nullopt : std::optional(point->parts);
}

std::optional<double> size_ratio(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<std::size_t> a = first.size(), b = circuit.size();
  if (!a || !b || *b == 0) return std::nullopt;
  return static_cast<double>(*a) / static_cast<double>(*b);
}

void check_request(const CircuitRequest& request) {
  check_options(request.search);
  find_task(request.task.name);
}

CircuitsOfKind find_circuits(const CircuitRequest& request, std::span<const LoadedModel> models,
                             const Context& context) {
  check_request(request);
  if (request.state.empty()) return find_all(request, models, nullptr, context);
  SweepState state(request.state, context.writes());
  try {
    CircuitsOfKind circuits = find_all(request, models, &state, context);
    state.save();
    return circuits;
  } catch (const Stopped&) {
    state.save();
    throw;
  }
}

std::vector<ModelCircuit> find_model_circuits(const LoadedModel& model,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              const Context& context) {
  return search_kinds(model, selection, kinds, {}, context);
}

Json to_json(const ModelCircuit& circuit, Scores scores) {
  const FoundCircuit* found = circuit.found ? &*circuit.found : nullptr;
  const bool cells = circuit.options.parts == Parts::kAttentionEdges;  // each prompt has its own
  Json json = {{"model", circuit.model},
               {"fit", fit_json(circuit.task.prompts)},
               {"check", to_json(circuit.check)},
               {"level", circuit.options.level},
               {"size", json_or_null(circuit.size())},
               {"parts", found ? Json(found->part_count) : Json()},
               {"area", found ? Json(found->curve.area()) : Json()},
               {"circuit", found && !cells ? Json(found->members) : Json()},
               {"published", found ? published_json(*found) : Json()}};
  if (scores == Scores::kEvery) {
    json["scores"] = found ? scores_json(*found) : Json();
    json["scores_by_prompt"] = found && found->cells ? cells_json(*found->cells) : Json();
  }
  json["curve"] = found ? curve_json(found->curve) : Json();
  return json;
}

Json to_json(const CircuitsOfKind& circuits, Scores scores) {
  Json models = Json::array();
  for (const ModelCircuit& circuit : circuits) {
    models.push_back(to_json(circuit, scores));
    models.back()["ratio"] = json_or_null(size_ratio(circuits[0], circuit));
  }
  const SearchOptions& options = circuits[0].options;
  const bool integrated = options.method == Method::kIntegrated;
  return {{"task", circuits[0].task.prompts.task},
          {"corruption", circuits[0].task.prompts.corruption},
          {"metric", name_of(circuits[0].task.metric)},
          {"kind", name_of(options.parts)},
          {"method", name_of(options.method)},
          {"steps", integrated ? Json(options.steps) : Json()},
          {"selection", name_of(options.selection)},
          {"replacement", name_of(options.replacement)},
          {"models", models}};
}

}  // namespace filigree::study

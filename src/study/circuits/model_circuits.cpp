#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "filigree/circuit_study.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

void require_finite(const FoundCircuit& found, const LoadedModel& model, const TaskPrompt& prompt) {
  std::vector<double> numbers;
  for (const CircuitPart& part : found.parts) numbers.push_back(part.score.mean);
  for (const CurvePoint& point : found.curve.points) numbers.push_back(point.effect);
  study::require_finite(numbers, "the circuit", model, prompt.clean);
}

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
    if (kept.state != nullptr) {
      std::string name = kept.section;
      if (kinds.size() > 1) name += fmt::format(" by {}", name_of(options.method));
      section = &kept.state->section(name, search_key(model.model(), circuit.task, options));
    }
    if (section != nullptr && section->steps() > 0)
      context.say(
          fmt::format("{}: goes on after {} steps", printable(model.label()), section->steps()));
    std::string what = model.label();
    if (kinds.size() > 1) {
      const bool same_parts = kinds[0].parts == kinds[1].parts;  // by several methods
      what += same_parts
                  ? fmt::format(" {}", method_name(options.parts, options.method))
                  : fmt::format(" {} {}", circuit.task.prompts.task, plural_of(options.parts));
    }
    circuit.found = search_circuit(model.model(), circuit.task, options, what, section, context);
    require_finite(*circuit.found, model, circuit.task.prompts.prompts[0]);
  }
  return circuits;
}

// One a kind, with one circuit a model each.
std::vector<CircuitsOfKind> find_all(const CircuitRequest& request,
                                     std::span<const SearchOptions> kinds, Models models,
                                     SweepState* state, const Context& context) {
  std::vector<CircuitsOfKind> found(kinds.size());
  const TaskSelection task = choose_text(request.task, models);
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<ModelCircuit> circuits =
        search_kinds(models[m], task, kinds, {state, fmt::format("model {}", m + 1)}, context);
    for (std::size_t k = 0; k < kinds.size(); ++k) found[k].push_back(std::move(circuits[k]));
  }
  return found;
}

// Keeps what is done, also when the work is stopped.
std::vector<CircuitsOfKind> find_and_keep(const CircuitRequest& request,
                                          std::span<const SearchOptions> kinds, Models models,
                                          const Context& context) {
  if (request.state.empty()) return find_all(request, kinds, models, nullptr, context);
  SweepState state(request.state, context.writes());
  try {
    std::vector<CircuitsOfKind> found = find_all(request, kinds, models, &state, context);
    state.save();
    return found;
  } catch (const Stopped&) {
    state.save();
    throw;
  }
}

Json place_json(const PatchTarget& target) {
  return {{"layer", target.layer},
          {"head", target.head < 0 ? Json() : Json(target.head)},
          {"expert", target.expert < 0 ? Json() : Json(target.expert)}};
}

Json place_json(const NamedEdge& edge) { return {{"from", edge.from}, {"to", edge.to}}; }

Json place_json(const NamedCell& cell) {
  return {{"layer", cell.head.layer},
          {"head", cell.head.head},
          {"query", cell.query},
          {"key", cell.key}};
}

constexpr std::size_t kNamedCells = 1000;  // in JSON, the most important; tables have all

// A "drop" is a measured one; estimates are called so.
Json scores_json(const FoundCircuit& found, Method method, std::size_t most) {
  const char* name = method == Method::kExact ? "drop" : "estimate";
  Json scores = Json::array();
  for (const CircuitPart& part : std::span(found.parts).first(std::min(found.parts.size(), most))) {
    Json entry = {{"part", part.name}};
    entry.update(std::visit([](const auto& place) { return place_json(place); }, part.place));
    entry[name] = part.score.mean;
    entry["standard_error"] = json_or_null(part.score.error);
    scores.push_back(std::move(entry));
  }
  return scores;
}

// What stands at the positions of the cells.
Json positions_json(const std::vector<TaskPrompt>& prompts) {
  Json list = Json::array();
  for (const TaskPrompt& prompt : prompts)
    list.push_back({{"tokens", prompt.tokens}, {"roles", prompt.roles}});
  return list;
}

// Of each prompt its `most` most important: layer, head, query, key, score.
Json cells_json(const CellScores& scores, std::size_t most) {
  Json prompts = Json::array();
  for (const CellScores::OfPrompt& prompt : scores.prompts) {
    Json cells = Json::array();
    std::vector<std::size_t> order = prompt.order();
    order.resize(std::min(order.size(), most));
    for (const std::size_t i : order) {
      const AttentionCell& cell = prompt.cells[i];
      cells.push_back({cell.layer, cell.head, cell.query, cell.key, prompt.drops[i]});
    }
    prompts.push_back(std::move(cells));
  }
  return prompts;
}

// With no part kept.
Json empty_json(const FoundCircuit& found) {
  const CurvePoint& empty = found.empty_circuit();
  return {{"effect", empty.effect},
          {"metric", empty.metric},
          {"standard_error", json_or_null(empty.error)}};
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
                      {"standard_error", json_or_null(point.error)}});
  return points;
}

}  // namespace

std::optional<std::size_t> ModelCircuit::size() const {
  const CurvePoint* point = carried() ? found->curve.at(options.level) : nullptr;
  return point == nullptr ? std::nullopt : std::optional(point->parts);
}

std::optional<double> size_ratio(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<std::size_t> a = first.size(), b = circuit.size();
  if (!a || !b || *b == 0) return std::nullopt;
  return static_cast<double>(*a) / static_cast<double>(*b);
}

void check_request(const CircuitRequest& request) {
  check_options(request.search);
  if (request.task.lines.empty()) find_task(request.task.name);
}

void check_methods(const CircuitRequest& request, const std::vector<Method>& methods) {
  for (std::size_t i = 0; i < methods.size(); ++i) {
    if (std::find(methods.begin(), methods.begin() + static_cast<std::ptrdiff_t>(i), methods[i]) !=
        methods.begin() + static_cast<std::ptrdiff_t>(i))
      throw RequestError(fmt::format("the method {} is named twice; compare it with others",
                                     method_name(request.search.parts, methods[i])));
    CircuitRequest one = request;
    one.search.method = methods[i];
    check_request(one);
  }
}

CircuitsOfKind run(const CircuitRequest& request, Models models, const Context& context) {
  check_request(request);
  return std::move(find_and_keep(request, std::span(&request.search, 1), models, context)[0]);
}

std::vector<CircuitsOfKind> find_circuits_by(const std::vector<Method>& methods,
                                             const CircuitRequest& request, Models models,
                                             const Context& context) {
  check_methods(request, methods);
  std::vector<SearchOptions> kinds;
  for (const Method method : methods) {
    kinds.push_back(request.search);
    kinds.back().method = method;
  }
  return find_and_keep(request, kinds, models, context);
}

std::optional<double> rank_correlation(const ModelCircuit& a, const ModelCircuit& b) {
  if (!a.found || !b.found) return std::nullopt;
  std::map<std::string, std::array<float, 2>> scores;  // a part that one does not score is at 0
  for (const CircuitPart& part : a.found->parts)
    scores[part.name][0] = static_cast<float>(std::abs(part.score.mean));
  for (const CircuitPart& part : b.found->parts)
    scores[part.name][1] = static_cast<float>(std::abs(part.score.mean));
  std::vector<float> series(2 * scores.size());
  std::size_t place = 0;
  for (const auto& [name, pair] : scores) {
    series[place] = pair[0], series[scores.size() + place] = pair[1];
    ++place;
  }
  return filigree::rank_correlation(series, 2, scores.size(), scores.size())[1];
}

std::vector<ModelCircuit> find_model_circuits(const LoadedModel& model,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              const Context& context) {
  return search_kinds(model, selection, kinds, {}, context);
}

Json to_json(const ModelCircuit& circuit, Scores scores, std::size_t cells_of_prompt) {
  const FoundCircuit* found = circuit.found ? &*circuit.found : nullptr;
  const bool cells = circuit.options.parts == Parts::kAttentionEdges;  // each prompt has its own
  Json json = {{"model", circuit.model},
               {"fit", fit_json(circuit.task.prompts)},
               {"check", to_json(circuit.check)},
               {"level", circuit.options.level},
               {"none_kept", found ? empty_json(*found) : Json()},
               {"carried", found ? Json(found->carried) : Json()},
               {"size", json_or_null(circuit.size())},
               {"parts", found ? Json(found->part_count) : Json()},
               {"area", found ? Json(found->curve.area()) : Json()},
               {"circuit", found && !cells ? Json(found->members) : Json()},
               {"published", found ? published_json(*found) : Json()}};
  if (scores == Scores::kEvery) {
    const std::size_t most =
        cells ? std::max(cells_of_prompt, kNamedCells) : std::numeric_limits<std::size_t>::max();
    json["scores"] = found ? scores_json(*found, circuit.options.method, most) : Json();
    json["scores_by_prompt"] =
        found && found->cells ? cells_json(*found->cells, cells_of_prompt) : Json();
    json["prompts"] = found && found->cells ? positions_json(circuit.task.prompts.prompts) : Json();
  }
  json["curve"] = found ? curve_json(found->curve) : Json();
  return json;
}

Json to_json(const CircuitsOfKind& circuits, Scores scores, std::size_t cells_of_prompt) {
  Json models = Json::array();
  for (const ModelCircuit& circuit : circuits) {
    models.push_back(to_json(circuit, scores, cells_of_prompt));
    models.back()["ratio"] = json_or_null(size_ratio(circuits[0], circuit));
  }
  const SearchOptions& options = circuits[0].options;
  const bool integrated = options.method == Method::kIntegrated;
  return {{"task", circuits[0].task.prompts.task},
          {"corruption", circuits[0].task.prompts.corruption},
          {"metric", name_of(circuits[0].task.metric)},
          {"text", text_json(circuits[0].task)},
          {"kind", name_of(options.parts)},
          {"method", name_of(options.method)},
          {"steps", integrated ? Json(options.steps) : Json()},
          {"selection", name_of(options.selection)},
          {"replacement", name_of(options.replacement)},
          {"models", models}};
}

Json methods_json(const std::vector<CircuitsOfKind>& methods, Scores scores,
                  std::size_t cells_of_prompt) {
  Json list = Json::array(), correlations = Json::array();
  for (const CircuitsOfKind& circuits : methods)
    list.push_back(to_json(circuits, scores, cells_of_prompt));
  for (std::size_t m = 0; m < methods[0].size(); ++m)
    for (std::size_t a = 0; a < methods.size(); ++a)
      for (std::size_t b = a + 1; b < methods.size(); ++b)
        correlations.push_back(
            {{"model", methods[a][m].model},
             {"methods",
              {name_of(methods[a][m].options.method), name_of(methods[b][m].options.method)}},
             {"spearman", json_or_null(rank_correlation(methods[a][m], methods[b][m]))}});
  return {{"methods", list}, {"rank_correlations", correlations}};
}

}  // namespace filigree::study

#include "filigree/serve/answers.h"

#include <fmt/format.h>

#include <cmath>

#include "filigree/base/version.h"
#include "filigree/report/packed_maps.h"
#include "filigree/report/page_colors.h"
#include "filigree/study/attention/model_analysis.h"
#include "filigree/study/not_finite.h"
#include "filigree/study/run/run.h"
#include "filigree/study/tokens.h"

namespace filigree::serve {
namespace {

std::vector<std::string> shown_tokens(const study::LoadedModel& model,
                                      std::span<const TokenId> ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(study::shown_token(model.tokenizer(), id));
  return tokens;
}

// The prompt of a request and its changes, as one model takes them.
struct ModelRun {
  Prompt prompt = {};
  Interventions interventions = {};
};

ModelRun run_of(const study::LoadedModel& model, const PromptQuery& query) {
  ModelRun run;
  run.prompt.ids = study::prompt_tokens(model, query.prompt);
  run.prompt.tokens = shown_tokens(model, run.prompt.ids);
  run.interventions = study::for_text(query.interventions, model, run.prompt.ids);
  study::check_positions(run.interventions, static_cast<std::int64_t>(run.prompt.ids.size()));
  return run;
}

void check_cells(std::size_t heads, std::size_t tokens, std::size_t most) {
  const std::size_t each = tokens * (tokens + 1) / 2;
  if (heads * each > most)
    throw Refusal(413,
                  fmt::format("{} maps of {} tokens are {} cells", heads, tokens, heads * each),
                  fmt::format("ask for at most {}: fewer heads or a shorter prompt", most));
}

// Five decimals are more than a picture shows, and half the bytes.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::round(value * 1e5) / 1e5) : Json();
}

Json lower_triangle(std::span<const float> map, std::int64_t length) {
  Json cells = Json::array();
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      cells.push_back(rounded(map[static_cast<std::size_t>(i * length + j)]));
  return cells;
}

Json head_numbers(const HeadMap& map) {
  std::vector<double> given(map.value_norms.size()), got(map.value_norms.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double weight = map.weights[i * given.size() + j];
      given[i] += weight, got[j] += weight;
    }
  const auto list = [](const auto& values) {
    Json numbers = Json::array();
    for (const double value : values) numbers.push_back(rounded(value));
    return numbers;
  };
  return {{"weights", lower_triangle(map.weights, map.length)},
          {"scores", lower_triangle(map.scores, map.length)},
          {"gate", map.gate.empty() ? Json() : lower_triangle(map.gate, map.length)},
          {"value_norms", list(map.value_norms)},
          {"row_sums", list(given)},
          {"column_sums", list(got)}};
}

}  // namespace

Json models_json(std::span<const study::LoadedModel> models, const Limits& limits) {
  Json list = Json::array();
  for (const study::LoadedModel& model : models) {
    const ModelConfig& config = model.config();
    Json layers = Json::array(), heads = Json::array();
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
      layers.push_back(layer_name(layer));
    for (const HeadId& head : all_heads(config.layers, config.heads))
      heads.push_back(head_name(head));
    list.push_back({{"name", model.label()},
                    {"family", config.family},
                    {"parameters", parameter_count(config)},
                    {"context", config.context},
                    {"vocabulary", config.vocabulary},
                    {"gated", config.gate.on()},
                    {"layers", layers},
                    {"heads", heads}});
  }
  return {{"filigree", version_string()},
          {"models", list},
          {"tasks", study::task_list_json().at("tasks")},
          {"colors", page_colors()},
          {"limits",
           {{"prompt_bytes", limits.prompt_bytes},
            {"interventions", limits.interventions},
            {"map_cells", limits.map_cells},
            {"head_cells", limits.head_cells}}}};
}

Json tokens_json(const study::LoadedModel& model, const std::string& prompt) {
  const std::vector<TokenId> ids = study::prompt_tokens(model, prompt);
  return {{"prompt", prompt}, {"ids", ids}, {"tokens", shown_tokens(model, ids)}};
}

Json predictions_json(const study::LoadedModel& model, const PredictQuery& query,
                      const study::Context& context) {
  study::RunRequest request;
  request.prompt = query.run.prompt;
  request.interventions = query.run.interventions;
  request.top = query.top;
  Json json = to_json(study::run_prompt(request, model, context));
  json["model"] = model.label();  // where its folder lies is nobody's business
  return json;
}

Json maps_json(const study::LoadedModel& model, const MapsQuery& query, const Limits& limits,
               const study::Context& context) {
  if (query.kind == MapKind::kScores)
    throw Refusal(400, "scores are no shares and cannot be packed",
                  "POST /api/head gives those of one head");
  const ModelConfig& config = model.config();
  const ModelRun run = run_of(model, query.run);
  study::AnalysisPlan plan;
  plan.heads = parse_heads(query.heads, config.layers, config.heads);
  plan.kind = query.kind;
  plan.interventions = run.interventions;
  check_cells(plan.heads.size(), run.prompt.ids.size(), limits.map_cells);
  PackedMaps packed(PackedMaps::Packing::kQuick);
  std::vector<float> map(run.prompt.ids.size() * run.prompt.ids.size());
  plan.each = [&](std::span<const HeadMap> heads) {
    for (const HeadMap& head : heads) {
      fill_map(head, query.kind, map);
      packed.add(map, head.length);
    }
  };
  study::analyse_model(model, {.prompts = {run.prompt}, .tokenizer = {}}, plan, context);
  Json heads = Json::array();
  for (const HeadId& head : plan.heads) heads.push_back(head_name(head));
  return {{"model", model.label()},
          {"tokens", run.prompt.tokens},
          {"kind", name_of(query.kind)},
          {"heads", heads},
          {"maps", packed.finish()}};
}

Json head_json(const study::LoadedModel& model, const HeadQuery& query, const Limits& limits,
               const study::Context& context) {
  const ModelRun run = run_of(model, query.run);
  check_cells(1, run.prompt.ids.size(), limits.head_cells);
  AppliedInterventions changes(model.model(), run.interventions);
  CaptureOptions options;
  options.heads = {query.head};
  options.scores = options.gate = options.value_norms = true;
  options.interventions = &changes;
  Json json = {
      {"model", model.label()}, {"head", head_name(query.head)}, {"tokens", run.prompt.tokens}};
  context.throw_if_stopped();
  capture_maps(model.model(), std::span(&run.prompt, 1), options,
               [&](std::span<const HeadMap> maps) {
                 study::require_finite(maps[0].weights, "the attention", model, run.prompt.ids);
                 json.update(head_numbers(maps[0]));
               });
  return json;
}

Json circuits_json(std::span<const study::LoadedModel> models, const CircuitQuery& query,
                   const study::Context& context) {
  study::CircuitRequest request = query.request;
  request.task = study::choose_text(request.task, models);
  study::CircuitsOfKind circuits;
  for (const std::size_t m : query.models)
    for (study::ModelCircuit& circuit :
         study::find_circuits(request, models.subspan(m, 1), context)) {
      circuit.model = circuit.label;
      circuits.push_back(std::move(circuit));
    }
  Json json = to_json(circuits, study::Scores::kLeftOut);
  json.erase("text");  // a path of this machine
  return json;
}

}  // namespace filigree::serve

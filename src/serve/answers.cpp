#include "filigree/serve/answers.h"

#include <fmt/format.h>

#include <cmath>

#include "filigree/base/version.h"
#include "filigree/report/packed_maps.h"
#include "filigree/report/page_colors.h"
#include "filigree/serve/features_work.h"
#include "filigree/serve/model_run.h"
#include "filigree/study/attention/model_analysis.h"
#include "filigree/study/not_finite.h"
#include "filigree/study/run/run.h"
#include "filigree/study/tokens.h"

namespace filigree::serve {

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
                    {"features", has_features(model)},
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

}  // namespace filigree::serve

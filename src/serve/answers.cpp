#include "serve/answers.h"

#include "filigree/version.h"
#include "report/page_colors.h"
#include "serve/features_work.h"

namespace filigree::serve {

Json models_json(study::Models models, const Limits& limits) {
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

}  // namespace filigree::serve

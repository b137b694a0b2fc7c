#include "filigree/serve/long_work.h"

#include "filigree/base/error.h"
#include "filigree/features/files/transcoder_files.h"
#include "filigree/study/circuits/circuit_drawings.h"
#include "filigree/study/circuits/token_circuits.h"
#include "filigree/study/model_places.h"
#include "filigree/study/trace/trace_figures.h"

namespace filigree::serve {
namespace {

// In both themes, so that the page need not ask again.
void add_figure(Json& figures, const char* title, const study::FigureInput& input) {
  figures.push_back({{"title", title},
                     {"svg", study::figure_svg(input, {.theme = study::FigureTheme::kLight})},
                     {"dark_svg", study::figure_svg(input, {.theme = study::FigureTheme::kDark})}});
}

Json figures_of(const study::CircuitsOfKind& circuits, std::span<const study::LoadedModel> models) {
  Json figures = Json::array();
  if (!study::has_figures()) return figures;
  if (const auto drawing = study::drawing_of(circuits))
    add_figure(figures, "Edges of the circuits", &*drawing);
  if (const auto tokens = study::token_circuit_of(circuits, models))
    add_figure(figures, "Attention edges over the first prompt", &*tokens);
  if (const auto grid = study::grid_of(circuits, models))
    add_figure(figures, "Heads of the circuits", &*grid);
  return figures;
}

}  // namespace

Json circuits_json(std::span<const study::LoadedModel> models, const CircuitQuery& query,
                   const study::Context& context) {
  study::CircuitRequest request = query.request;
  request.task = study::choose_text(request.task, models);
  const std::span<const study::LoadedModel> chosen = chosen_models(models, query.models);
  study::CircuitsOfKind circuits = study::find_circuits(request, chosen, context);
  const Json figures = figures_of(circuits, chosen);
  for (study::ModelCircuit& circuit : circuits) circuit.model = circuit.label;
  Json json = to_json(circuits, study::Scores::kLeftOut);
  json.erase("text");  // a path of this machine
  json["figures"] = figures;
  return json;
}

bool has_features(const study::LoadedModel& model) {
  try {
    study::features_of_model("", model.name());
    return true;
  } catch (const Error&) {
    return false;
  }
}

Json trace_json(std::span<const study::LoadedModel> models, const TraceQuery& query,
                const study::Context& context) {
  std::vector<std::unique_ptr<FeatureDictionary>> dictionaries;
  std::vector<study::TracedThrough> through;
  for (const std::size_t m : query.models) {
    if (!has_features(models[m])) continue;
    dictionaries.push_back(open_dictionary(study::features_of_model("", models[m].name())));
    through.push_back({&models[m], dictionaries.back().get(), models[m].label() + "-features", {}});
  }
  require(!through.empty(),
          "no model has transcoders beside it; filigree features train makes some");
  const study::TraceResult result = study::run_trace(query.request, through, context);
  Json json = to_json(result);
  for (std::size_t m = 0; m < through.size(); ++m)
    json["models"][m]["model"] = through[m].model->label();
  json["figures"] = Json::array();
  if (study::has_figures()) {
    const figure::FeatureGraphFigure graph = study::graph_figure(result);
    add_figure(json["figures"], "Graph of features", &graph);
    try {
      const figure::CarriedPairFigure heads = study::heads_figure(result);
      add_figure(json["figures"], "Heads that carry it", &heads);
    } catch (const Error&) {  // nothing is carried between tokens
    }
  }
  return json;
}

}  // namespace filigree::serve

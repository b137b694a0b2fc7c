#include "serve/long_work.h"

#include "filigree/circuit_study.h"

namespace filigree::serve {

JobResult circuit_work(study::Models models, const CircuitQuery& query,
                       const study::Context& context) {
  study::CircuitRequest request = query.request;
  request.task = study::choose_text(request.task, models);
  const study::Models chosen = chosen_models(models, query.models);
  study::CircuitsOfKind circuits = study::run(request, chosen, context);
  for (study::ModelCircuit& circuit : circuits) circuit.model = circuit.label;
  JobResult done = {to_json(circuits, study::Scores::kLeftOut)};
  done.json.erase("text");  // a path of this machine
  done.json["figures"] = Json::array();
  if (const auto curves = study::curves_of({&circuits, 1}))
    done.add_figure("Explained effect", *curves);
  if (const auto drawing = study::drawing_of(circuits))
    done.add_figure("Edges of the circuits", *drawing);
  if (const auto tokens = study::token_circuit_of(circuits, chosen))
    done.add_figure("Attention edges over the first prompt", *tokens);
  if (const auto grid = study::grid_of(circuits, chosen))
    done.add_figure("Heads of the circuits", *grid);
  return done;
}

JobResult sweep_work(study::Models models, const SweepQuery& query, const study::Context& context) {
  study::PatchRequest request = query.request;
  request.task = study::choose_text(request.task, models);
  study::PatchResult result = study::run(request, chosen_models(models, query.models), context);
  for (study::SweptModel& model : result.models) model.model = model.label;
  JobResult done = {to_json(result)};
  done.json.erase("text");  // a path of this machine
  done.json["figures"] = Json::array();
  if (const auto figure = study::figure_of(result)) done.add_figure("Effects of patches", *figure);
  return done;
}

}  // namespace filigree::serve

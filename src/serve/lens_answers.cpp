#include "serve/lens_answers.h"

#include <fmt/format.h>

#include "filigree/error.h"
#include "filigree/lens_study.h"

namespace filigree::serve {

Json lens_json(const study::LoadedModel& model, const LensQuery& query, const Limits& limits,
               const study::Context& context) {
  const std::size_t tokens = study::prompt_tokens(model, query.run.prompt).size(),
                    cells = tokens * static_cast<std::size_t>(model.config().layers + 1);
  if (cells > limits.lens_cells)
    throw Refusal(413, fmt::format("the lens of {} tokens has {} cells", tokens, cells),
                  fmt::format("ask for a shorter prompt; {} are the most", limits.lens_cells));
  study::LensRequest request;
  request.prompt = query.run.prompt;
  request.interventions = query.run.interventions;
  request.token = query.token;
  request.top = query.top;
  Json json = to_json(study::run(request, model, context)).at("models").at(0);
  json["model"] = model.label();
  return json;
}

Json attribution_json(const study::LoadedModel& model, const AttributionQuery& query,
                      const study::Context& context) {
  study::AttributionRequest request;
  request.prompt = query.run.prompt;
  request.interventions = query.run.interventions;
  request.at = query.at;
  if (!query.at) request.answers = {query.answer};
  if (!query.wrong.empty()) request.wrong = {query.wrong};
  Json json = to_json(study::run(request, model, context)).at("models").at(0);
  json["model"] = model.label();
  return json;
}

Json task_json(const study::LoadedModel& model, const TaskQuery& query,
               const study::Context& context) {
  study::TaskSelection selection;
  selection.name = query.task;
  selection.prompts = query.prompts;
  const study::LoadedTask task = study::load_task(selection, model, context);
  Json prompts = Json::array();
  for (const TaskPrompt& prompt : task.prompts.prompts)
    prompts.push_back({{"clean", prompt.text.clean},
                       {"corrupt", prompt.text.corrupt},
                       {"answer", prompt.text.answers},
                       {"wrong", prompt.text.wrong}});
  return {{"task", query.task}, {"description", task.description}, {"prompts", prompts}};
}

}  // namespace filigree::serve

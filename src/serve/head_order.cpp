#include "serve/head_order.h"

#include "filigree/attention_study.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/lens_study.h"

namespace filigree::serve {
namespace {

constexpr std::int64_t kPromptsOfTask = 4;

study::PromptSet task_prompts(const study::LoadedModel& model, const study::Context& context) {
  study::PromptSet set;
  set.tokenizer = model.tokenizer();
  for (const TaskDefinition& task : task_definitions()) {
    if (task.from_text) continue;
    study::TaskSelection selection;
    selection.name = std::string(task.name);
    selection.prompts = kPromptsOfTask;
    try {
      for (TaskPrompt& prompt : study::load_task(selection, model, context).prompts.prompts)
        set.prompts.push_back({std::move(prompt.clean), std::move(prompt.tokens)});
    } catch (const Error&) {  // no prompt of it fits
    }
  }
  return set;
}

}  // namespace

Json roles_json(const study::LoadedModel& model, const study::Context& context) {
  const study::PromptSet prompts = task_prompts(model, context);
  if (prompts.prompts.empty()) return {{"model", model.label()}, {"roles", nullptr}};
  study::AnalysisPlan plan;
  plan.heads = all_heads(model.config().layers, model.config().heads);
  plan.roles = true;
  Json roles = Json::array();
  for (const HeadRole& role : study::analyse_model(model, prompts, plan, context).roles)
    roles.push_back({{"role", role.name}, {"confidence", role.confidence}});
  return {{"model", model.label()}, {"roles", roles}};
}

Json importance_json(const study::LoadedModel& model, const ImportanceQuery& query,
                     const study::Context& context) {
  study::RunRequest request;
  request.prompt = query.run.prompt;
  request.interventions = query.run.interventions;
  request.top = 1;
  request.gradient_of = query.token;
  if (request.gradient_of.empty()) {
    const study::RunResult first = study::run(request, model, context);
    const study::RunValues& values = first.changed ? *first.changed : first.plain;
    request.gradient_of = first.shown[values.likeliest.back().id];
  }
  const study::RunResult result = study::run(request, model, context);
  Json parts = Json::object();
  for (const study::PartGradient& part : (result.changed ? *result.changed : result.plain).parts)
    parts[name_of(part.part)] = part.value_times_gradient;
  return {{"model", model.label()}, {"token", request.gradient_of}, {"parts", parts}};
}

}  // namespace filigree::serve

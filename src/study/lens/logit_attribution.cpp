#include "filigree/study/lens/logit_attribution.h"

#include <fmt/format.h>

#include <algorithm>

#include "filigree/base/strings.h"
#include "filigree/study/not_finite.h"
#include "filigree/study/tokens.h"

namespace filigree::study {
namespace {

TaskPrompt prompt_of(const AttributionRequest& request, const LoadedModel& model) {
  TaskPrompt prompt;
  prompt.text = {request.prompt, "", request.answers, request.wrong};
  prompt.clean = prompt_tokens(model, request.prompt);
  for (const std::string& text : request.answers)
    prompt.answers.push_back(single_token(model, text, "the answer"));
  for (const std::string& text : request.wrong)
    prompt.wrong.push_back(single_token(model, text, "the wrong answer"));
  return prompt;
}

AttributedModel attribute(const AttributionRequest& request, const LoadedModel& model,
                          const Context& context) {
  AttributedModel result;
  result.model = model.name(), result.label = model.label();
  std::vector<TaskPrompt> prompts;
  if (request.task.name.empty()) {
    prompts = {prompt_of(request, model)};
  } else {
    result.task = load_task(request.task, model, context);
    prompts = result.task->prompts.prompts;
    // Contributions are to logits, whatever the task measures.
    result.task->metric = Metric::kLogitDifference;
    result.check = check_ability(model, prompts, result.task->metric, context);
  }
  const std::unique_ptr<WorkReport> report =
      context.begin({model.label(), "prompts", static_cast<std::int64_t>(prompts.size())});
  AttributionOptions options;
  options.progress = [&](std::size_t done) {
    context.throw_if_stopped();
    report->update(static_cast<std::int64_t>(done));
  };
  result.found = attribute_logits(model.model(), prompts, options);
  report->finish();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<double> numbers = {result.found.total[i]};
    for (const std::vector<double>& part : result.found.contributions) numbers.push_back(part[i]);
    require_finite(numbers, "the attribution", model, prompts[i].clean);
  }
  return result;
}

// Prompt by prompt, so that the sum has an error.
Estimate sum_of(const LogitAttribution& found, const std::vector<PartKind>& kinds) {
  std::vector<double> sums(found.total.size(), 0.0);
  for (std::size_t p = 0; p < found.parts.size(); ++p)
    if (std::find(kinds.begin(), kinds.end(), found.parts[p].kind) != kinds.end())
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found.contributions[p][i];
  return estimate(sums);
}

Json model_json(const AttributedModel& model) {
  Json parts = Json::array(), sums = Json::object();
  for (std::size_t p = 0; p < model.found.parts.size(); ++p) {
    const Part& part = model.found.parts[p];
    const Estimate value = model.found.of(p);
    parts.push_back({{"part", name_of(part)},
                     {"kind", name_of(part.kind)},
                     {"layer", part.layer < 0 ? Json() : Json(part.layer)},
                     {"head", part.head < 0 ? Json() : Json(part.head)},
                     {"contribution", value.mean},
                     {"standard_error", json_or_null(value.error)}});
  }
  for (const KindSum& kind : kind_sums(model.found))
    sums[std::string(kind.name)] = to_json(kind.sum);
  return {{"model", model.model},
          {"prompts", model.found.total.size()},
          {"total", to_json(estimate(model.found.total))},
          {"sums", sums},
          {"parts", parts},
          {"fit", model.task ? fit_json(model.task->prompts) : Json()},
          {"check", model.check ? to_json(*model.check) : Json()}};
}

figure::MapPanel panel_of(const AttributedModel& model) {
  std::int64_t layers = 0, heads = 0;
  for (const Part& part : model.found.parts)
    layers = std::max(layers, part.layer + 1), heads = std::max(heads, part.head + 1);
  figure::MapPanel panel;
  panel.title = fmt::format("{}: {:+.3f}", model.label, estimate(model.found.total).mean);
  panel.rows.name = "layer", panel.columns.name = "head";
  for (std::int64_t l = 0; l < layers; ++l) panel.rows.labels.push_back(std::to_string(l));
  for (std::int64_t h = 0; h < heads; ++h) panel.columns.labels.push_back(std::to_string(h));
  panel.columns.labels.emplace_back("MLP");
  panel.columns.groups = {{"heads", static_cast<std::size_t>(heads)}, {"MLP", 1}};
  panel.columns.gaps = true;
  panel.values.resize(static_cast<std::size_t>(layers * (heads + 1)));
  for (std::size_t p = 0; p < model.found.parts.size(); ++p) {
    const Part& part = model.found.parts[p];
    if (part.kind != PartKind::kHead && part.kind != PartKind::kMlp) continue;
    const std::int64_t column = part.kind == PartKind::kHead ? part.head : heads;
    panel.values[static_cast<std::size_t>(part.layer * (heads + 1) + column)] =
        static_cast<float>(model.found.of(p).mean);
  }
  return panel;
}

}  // namespace

void check_request(const AttributionRequest& request) {
  const bool task = !request.task.name.empty();
  if (task == !request.prompt.empty())
    throw RequestError("give either a task, or a prompt and its answer");
  if (!task && request.answers.empty())
    throw RequestError("a prompt needs an answer: whose logit is it to be?");
  if (task && (!request.answers.empty() || !request.wrong.empty()))
    throw RequestError("answers, right and wrong, go with a prompt; a task has its own");
  if (task) find_task(request.task.name);
}

std::string measured_text(const AttributionRequest& request) {
  if (!request.task.name.empty())
    return fmt::format("{}: mean logit of the answers less that of the wrong ones",
                       printable(request.task.name));
  const auto list = [](const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts)
      all += (all.empty() ? "'" : ", '") + printable(text) + "'";
    return all;
  };
  return request.wrong.empty() ? fmt::format("logit of {}", list(request.answers))
                               : fmt::format("logit of {} less that of {}", list(request.answers),
                                             list(request.wrong));
}

AttributionResult attribute_models(const AttributionRequest& request,
                                   std::span<const LoadedModel> models, const Context& context) {
  check_request(request);
  AttributionResult result = {request, {}};
  if (!request.task.name.empty()) result.request.task = choose_text(request.task, models);
  for (const LoadedModel& model : models)
    result.models.push_back(attribute(result.request, model, context));
  return result;
}

std::vector<KindSum> kind_sums(const LogitAttribution& found) {
  return {{"embedding", sum_of(found, {PartKind::kEmbedding})},
          {"positions", sum_of(found, {PartKind::kPositions})},
          {"heads", sum_of(found, {PartKind::kHead})},
          {"mlps", sum_of(found, {PartKind::kMlp})},
          {"biases", sum_of(found, {PartKind::kAttentionBias, PartKind::kOutputBias})},
          {"rest", sum_of(found, {PartKind::kRest})}};
}

Json to_json(const AttributionResult& result) {
  Json models = Json::array();
  for (const AttributedModel& model : result.models) models.push_back(model_json(model));
  return {{"of", measured_text(result.request)}, {"models", models}};
}

figure::LabelledMaps figure_of(const AttributionResult& result) {
  const AttributionRequest& request = result.request;
  const std::size_t prompts = result.models[0].found.total.size();
  figure::LabelledMaps maps;
  maps.title = "Direct logit attribution";
  maps.scale_label = request.prompt.empty() || !request.wrong.empty()
                         ? "contribution to the logit difference"
                         : "contribution to the logit";
  for (const AttributedModel& model : result.models) maps.panels.push_back(panel_of(model));
  maps.caption = fmt::format(
      "{}, at the last token; {}the scale of the final norm held fixed. Embeddings and biases make "
      "up the rest of each sum.",
      measured_text(request),
      prompts > 1 ? fmt::format("mean over {} prompts; ", prompts) : std::string());
  return maps;
}

}  // namespace filigree::study

#include <fmt/format.h>

#include <algorithm>

#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

// A prompt with its answers, and the one position that is read.
struct ReadPrompt {
  std::vector<TokenId> ids = {};
  ReadLogit logit = {};
};

ReadPrompt prompt_of(const AttributionRequest& request, const LoadedModel& model) {
  ReadPrompt prompt;
  prompt.ids = prompt_tokens(model, request.prompt, request.chat);
  const auto T = static_cast<std::int64_t>(prompt.ids.size());
  prompt.logit.position = request.at.value_or(T) - 1;
  if (request.at) {
    require(*request.at >= 1 && *request.at < T,
            "the attribution of the token at position {} of {}: it needs one before it, and the "
            "last is {}",
            *request.at, T, T - 1);
    prompt.logit.answers = {prompt.ids[static_cast<std::size_t>(*request.at)]};
  }
  for (const std::string& text : request.answers)
    prompt.logit.answers.push_back(single_token(model, text, "the answer"));
  for (const std::string& text : request.wrong)
    prompt.logit.wrong.push_back(single_token(model, text, "the wrong answer"));
  return prompt;
}

void require_finite(const LogitAttribution& found, std::size_t i, const LoadedModel& model,
                    const std::vector<TokenId>& ids) {
  std::vector<double> numbers = {found.total[i]};
  for (const std::vector<double>& part : found.contributions) numbers.push_back(part[i]);
  require_finite(numbers, "the attribution", model, ids);
}

AttributedModel attribute_prompt(const AttributionRequest& request, const LoadedModel& model,
                                 const Context& context) {
  AttributedModel result = {.model = model.name(), .label = model.label()};
  const std::unique_ptr<WorkReport> report = context.begin({model.label(), "prompts", 1});
  context.throw_if_stopped();
  const ReadPrompt prompt = prompt_of(request, model);
  AppliedInterventions changes(model.model(), for_text(request.interventions, model, prompt.ids));
  result.found = attribute_positions(model.model(), prompt.ids, {prompt.logit}, &changes);
  report->finish();
  require_finite(result.found, 0, model, prompt.ids);
  return result;
}

AttributedModel attribute_task(const AttributionRequest& request, const LoadedModel& model,
                               const Context& context) {
  AttributedModel result = {.model = model.name(), .label = model.label()};
  result.task = load_task(request.task, model, context);
  const std::vector<TaskPrompt>& prompts = result.task->prompts.prompts;
  // Contributions are to logits, whatever the task measures.
  result.task->metric = Metric::kLogitDifference;
  result.check = check_ability(model, prompts, result.task->metric, context);
  const std::unique_ptr<WorkReport> report =
      context.begin({model.label(), "prompts", static_cast<std::int64_t>(prompts.size())});
  AttributionOptions options;
  options.progress = [&](std::size_t done) {
    context.throw_if_stopped();
    report->update(static_cast<std::int64_t>(done));
  };
  result.found = attribute_logits(model.model(), prompts, options);
  report->finish();
  for (std::size_t i = 0; i < prompts.size(); ++i)
    require_finite(result.found, i, model, prompts[i].clean);
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
  if (!task && request.answers.empty() == !request.at)
    throw RequestError("a prompt needs an answer or a position: whose logit is it to be?");
  if (task && (!request.answers.empty() || !request.wrong.empty() || request.at))
    throw RequestError("answers, right and wrong, go with a prompt; a task has its own");
  if (task && !request.interventions.empty())
    throw RequestError("changes go with a prompt; a task is attributed as the model runs it");
  if (task) find_task(request.task.name);
}

std::string measured_text(const AttributionRequest& request) {
  if (!request.task.name.empty())
    return fmt::format("{}: mean logit of the answers less that of the wrong ones",
                       printable(request.task.name));
  if (request.at) return fmt::format("logit of the token at position {}", *request.at);
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

AttributionResult run(const AttributionRequest& request, Models models, const Context& context) {
  check_request(request);
  AttributionResult result = {request, {}};
  if (!request.task.name.empty()) result.request.task = choose_text(request.task, models);
  const auto& attribute = request.task.name.empty() ? attribute_prompt : attribute_task;
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
  return {{"of", measured_text(result.request)},
          {"interventions", to_json(result.request.interventions)},
          {"models", models}};
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
      "{}{}; {}the scale of the final norm held fixed. Embeddings and biases make "
      "up the rest of each sum.",
      measured_text(request), request.at ? "" : ", at the last token",
      prompts > 1 ? fmt::format("mean over {} prompts; ", prompts) : std::string());
  if (!request.interventions.empty())
    maps.caption += fmt::format(" Changed: {}.", text_of(request.interventions));
  return maps;
}

Knobs knobs_of(AttributionRequest& request) {
  Knobs knobs;
  knobs.section("Attribution");
  knobs.count({.name = "at",
               .what = "score the prompt's own token at this position instead of --target",
               .otherwise = "none"},
              request.at, {.min = 1, .max = 1 << 20});
  knobs.add(knobs_of(request.task));
  return knobs;
}

}  // namespace filigree::study

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "analyze/task/user_task.h"
#include "base/file_status.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

FitOptions fit_options(const TaskSelection& selection, const ModelConfig* config) {
  FitOptions fit;
  fit.answer_tokens = selection.first_token ? AnswerTokens::kFirst : AnswerTokens::kSingle;
  fit.end_of_text_first = selection.end_of_text;
  if (config != nullptr) {
    fit.vocabulary = config->vocabulary, fit.context = config->context;
    fit.outputs = config->outputs(), fit.bidirectional = config->bidirectional;
  }
  return fit;
}

}  // namespace

TaskSelection choose_text(TaskSelection selection,
                          std::span<const std::filesystem::path> model_folders) {
  if (!selection.lines.empty()) return selection;
  const TaskDefinition* task = find_task(selection.name);
  if (task == nullptr || !task->from_text || !selection.text.empty()) return selection;
  if (const auto found = find_held_out_text(model_folders)) {
    selection.text = *found;
    return selection;
  }
  throw RequestError(
      fmt::format("the task '{}' is drawn from a text, and neither the model's folder nor the "
                  "bundled model has {}: name one (--task-text FILE)",
                  task->name, kHeldOutFile));
}

TaskSelection choose_text(TaskSelection selection, Models models) {
  std::vector<std::filesystem::path> folders;
  for (const LoadedModel& model : models) folders.push_back(model.folder());
  return choose_text(std::move(selection), folders);
}

const TaskDefinition* find_task(const std::string& name) {
  for (const TaskDefinition& task : task_definitions())
    if (task.name == name || (!task.corpus_task.empty() && task.corpus_task == name)) return &task;
  if (is_file(name)) return nullptr;
  if (name.find('/') != std::string::npos || name.find('.') != std::string::npos)
    fail("there is no task file '{}'", printable(name));
  return &task_definition(name);  // throws, naming the nearest
}

LoadedTask load_task(const TaskSelection& selection, const Tokenizer& tokenizer,
                     const ModelConfig* config, std::uint64_t seed) {
  LoadedTask loaded;
  const bool own = !selection.lines.empty();
  const TaskDefinition* task = own ? nullptr : find_task(selection.name);
  const FitOptions fit = fit_options(selection, config);
  if (!selection.text.empty() && (task == nullptr || !task->from_text))
    throw RequestError(
        fmt::format("the task '{}' is not drawn from a text; '{}' would have no part in it",
                    printable(selection.name), printable(selection.text.string())));
  if (task == nullptr) {
    if (!selection.corruption.empty())
      throw RequestError(
          fmt::format("the corruption '{}' goes with built-in tasks; the file '{}' holds its "
                      "corrupt prompts",
                      printable(selection.corruption), printable(selection.name)));
    const auto most = static_cast<std::size_t>(selection.prompts);
    loaded.prompts = own ? parse_task(selection.lines, selection.name, tokenizer, fit, most)
                         : read_task(selection.name, tokenizer, fit, most);
    loaded.description = own ? "own prompts" : "prompts of a file";
  } else {
    TaskOptions options;
    options.prompts = static_cast<std::size_t>(selection.prompts);
    options.seed = seed;
    options.split = selection.split;
    options.fit = fit;
    if (task->from_text) {
      const TaskSelection chosen = choose_text(selection, Models());
      options.text = std::make_shared<const TaskText>(read_task_text(chosen.text));
      loaded.text = chosen.text.string();
    }
    loaded.prompts =
        make_task(*task, corruption_of(*task, selection.corruption), tokenizer, options);
    loaded.metric = task->metric;
    loaded.description = task->description;
  }
  if (selection.metric) loaded.metric = *selection.metric;
  return loaded;
}

LoadedTask load_task(const TaskSelection& selection, const LoadedModel& model,
                     const Context& context) {
  return load_task(choose_text(selection, {&model, 1}), model.tokenizer(), &model.config(),
                   context.seed);
}

std::string task_title(const LoadedTask& task) {
  return printable(std::filesystem::path(task.prompts.task).filename().string());
}

TaskCheck check_ability(const LoadedModel& model, const std::vector<TaskPrompt>& prompts,
                        Metric metric, const Context& context, const std::string& label) {
  std::unique_ptr<WorkReport> report;
  if (!label.empty())
    report = context.begin({label, "prompts", static_cast<std::int64_t>(prompts.size())});
  const TaskScores scores = score(model.model(), prompts, metric, [&](std::size_t done) {
    context.throw_if_stopped();
    if (report) report->update(static_cast<std::int64_t>(done));
  });
  if (report) report->finish();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    require_finite(std::span(&scores.clean[i], 1), "the task's metric", model, prompts[i].clean);
    require_finite(std::span(&scores.corrupt[i], 1), "the task's metric", model,
                   prompts[i].corrupt);
  }
  return check_task(scores, prompts);
}

bool is_able(const TaskCheck& check) {
  return check.better_than_chance && check.corruption_matters;
}

CheckedTask check_model_on_task(const TaskSelection& selection, const LoadedModel& model,
                                const Context& context) {
  CheckedTask checked = {model.name(), load_task(selection, model, context), {}};
  checked.check =
      check_ability(model, checked.task.prompts.prompts, checked.task.metric, context, "check");
  return checked;
}

Json fit_json(const TaskPrompts& prompts) {
  Json dropped = Json::array();
  for (std::size_t i = 0; i < kDropReasons; ++i)
    if (prompts.dropped[i] > 0)
      dropped.push_back({{"reason", description_of(static_cast<DropReason>(i))},
                         {"count", prompts.dropped[i]},
                         {"example", prompts.example[i]}});
  return {{"drawn", prompts.drawn},
          {"kept", prompts.prompts.size()},
          {"dropped", dropped},
          {"wrong_answers_left_out", prompts.wrong_left_out},
          {"first_token_answers", prompts.shortened},
          {"text_used_up", prompts.used_up}};
}

Json text_json(const LoadedTask& task) { return task.text.empty() ? Json() : Json(task.text); }

Json to_json(const LoadedTask& task) {
  Json prompts = Json::array();
  for (const TaskPrompt& prompt : task.prompts.prompts)
    prompts.push_back({{"clean", prompt.text.clean},
                       {"corrupt", prompt.text.corrupt},
                       {"answer", prompt.text.answers},
                       {"wrong", prompt.text.wrong},
                       {"clean_tokens", prompt.clean},
                       {"corrupt_tokens", prompt.corrupt},
                       {"answer_tokens", prompt.answers},
                       {"wrong_tokens", prompt.wrong}});
  return {{"task", task.prompts.task},      {"corruption", task.prompts.corruption},
          {"metric", name_of(task.metric)}, {"text", text_json(task)},
          {"fit", fit_json(task.prompts)},  {"prompts", prompts}};
}

Json to_json(const TaskCheck& check) {
  return {{"accuracy", {{"clean", check.clean_accuracy}, {"corrupt", check.corrupt_accuracy}}},
          {"chance", check.chance},
          {"p_value", check.p_value},
          {"least_p_value", check.least_p},
          {"enough_prompts", check.enough_prompts},
          {"better_than_chance", check.better_than_chance},
          {"corruption_matters", check.corruption_matters},
          {"metric",
           {{"clean", to_json(check.clean)},
            {"corrupt", to_json(check.corrupt)},
            {"difference", to_json(check.difference)}}}};
}

Json to_json(const CheckedTask& checked) {
  Json json = {{"task", checked.task.prompts.task},
               {"corruption", checked.task.prompts.corruption},
               {"model", checked.model},
               {"metric_name", name_of(checked.task.metric)},
               {"text", text_json(checked.task)},
               {"fit", fit_json(checked.task.prompts)}};
  json.update(to_json(checked.check));
  return json;
}

Json to_json(const Estimate& value) {
  return {{"mean", value.mean}, {"standard_error", json_or_null(value.error)}};
}

Json task_list_json() {
  Json list = Json::array();
  for (const TaskDefinition& task : task_definitions()) {
    Json corruptions = Json::array();
    for (const TaskCorruption& corruption : task.corruptions)
      corruptions.push_back({{"name", corruption.name}, {"description", corruption.description}});
    list.push_back({{"name", task.name},
                    {"description", task.description},
                    {"metric", name_of(task.metric)},
                    {"from_text", task.from_text},
                    {"corruptions", corruptions}});
  }
  return {{"tasks", list}};
}

Knobs knobs_of(TaskSelection& selection) {
  Knobs knobs;
  knobs.section("Task");
  knobs.flag({.name = "end-of-text", .what = "put the end-of-text token before every prompt"},
             selection.end_of_text);
  return knobs;
}

}  // namespace filigree::study

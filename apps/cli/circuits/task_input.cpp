#include "apps/cli/circuits/task_input.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/analyze/task/user_task.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kMostPrompts = 10000;

FitOptions fit_options(const TaskSelection& selection, const ModelConfig* config) {
  FitOptions fit;
  fit.answer_tokens = selection.first_token ? AnswerTokens::kFirst : AnswerTokens::kSingle;
  fit.end_of_text_first = selection.end_of_text;
  if (config != nullptr) fit.vocabulary = config->vocabulary, fit.context = config->context;
  return fit;
}

}  // namespace

void add_task_options(CLI::App& app, TaskSelection& selection, bool with_metric) {
  app.add_option("--corruption", selection.corruption,
                 "how prompts are corrupted (default the task's first; see task list)")
      ->type_name("NAME");
  app.add_option("--prompts", selection.prompts, "prompts wanted")
      ->check(whole_number(1, kMostPrompts))
      ->type_name("N")
      ->capture_default_str();
  if (with_metric)
    app.add_option("--metric", selection.metric,
                   "logit-diff, prob-diff, kl or accuracy (default the task's)")
        ->type_name("NAME");
  app.add_option("--split", selection.split,
                 "held-out or train: combinations that the corpus keeps from training, or not")
      ->check(CLI::Validator(
          [](std::string& name) {
            if (name == "held-out" || name == "train") return std::string();
            return fmt::format("'{}' is neither held-out nor train", printable(name));
          },
          ""))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--first-token", selection.first_token,
               "of answers of several tokens take the first instead of dropping the prompt");
  app.add_flag("--end-of-text", selection.end_of_text,
               "put the end-of-text token before every prompt");
}

const TaskDefinition* find_task(const std::string& name) {
  for (const TaskDefinition& task : task_definitions())
    if (task.name == name || (!task.corpus_task.empty() && task.corpus_task == name)) return &task;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) return nullptr;
  if (name.find('/') != std::string::npos || name.find('.') != std::string::npos)
    fail("there is no task file '{}'", printable(name));
  return &task_definition(name);  // throws, naming the nearest
}

LoadedTask load_task(const TaskSelection& selection, const Tokenizer& tokenizer,
                     const ModelConfig* config, std::uint64_t seed) {
  LoadedTask loaded;
  const TaskDefinition* task = find_task(selection.name);
  const FitOptions fit = fit_options(selection, config);
  if (task == nullptr) {
    require(selection.corruption.empty(),
            "--corruption goes with built-in tasks; the file '{}' "
            "holds its corrupt prompts",
            printable(selection.name));
    loaded.prompts =
        read_task(selection.name, tokenizer, fit, static_cast<std::size_t>(selection.prompts));
    loaded.description = "prompts of a file";
  } else {
    TaskOptions options;
    options.prompts = static_cast<std::size_t>(selection.prompts);
    options.seed = seed;
    options.split = selection.split == "train" ? CorpusSplit::kTrain : CorpusSplit::kHeldOut;
    options.fit = fit;
    loaded.prompts =
        make_task(*task, corruption_of(*task, selection.corruption), tokenizer, options);
    loaded.metric = task->metric;
    loaded.description = task->description;
  }
  if (!selection.metric.empty()) loaded.metric = metric_by_name(selection.metric);
  return loaded;
}

std::string dropped_text(const TaskPrompts& prompts) {
  std::string text =
      fmt::format("{} of {} prompts fit the tokenizer\n", with_thousands(prompts.prompts.size()),
                  with_thousands(prompts.drawn));
  for (std::size_t i = 0; i < kDropReasons; ++i)
    if (prompts.dropped[i] > 0)
      text +=
          fmt::format("  {} dropped: {}{}, such as \"{}\"\n", with_thousands(prompts.dropped[i]),
                      description_of(static_cast<DropReason>(i)),
                      static_cast<DropReason>(i) == DropReason::kSeveralTokens
                          ? " (--first-token takes the first)"
                          : "",
                      printable(prompts.example[i]));
  if (prompts.wrong_left_out > 0)
    text += fmt::format("  {} wrong answers left out for the same reasons\n",
                        with_thousands(prompts.wrong_left_out));
  if (prompts.shortened > 0)
    text +=
        fmt::format("  {} with answers of several tokens: the first token stands for the answer\n",
                    with_thousands(prompts.shortened));
  const auto [shortest, longest] = std::minmax_element(
      prompts.prompts.begin(), prompts.prompts.end(),
      [](const TaskPrompt& a, const TaskPrompt& b) { return a.length() < b.length(); });
  if (shortest != prompts.prompts.end() && shortest->length() < longest->length())
    text +=
        fmt::format("  of {} to {} tokens; prompts of one length run together, none is padded\n",
                    shortest->length(), longest->length());
  return text;
}

Json dropped_json(const TaskPrompts& prompts) {
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
          {"first_token_answers", prompts.shortened}};
}

std::string verdict_text(const TaskCheck& check) {
  const std::string chance =
      fmt::format("accuracy {:.1f} %, chance {:.1f} %, p = {:.2g}", 100 * check.clean_accuracy,
                  100 * check.chance, check.p_value);
  if (!check.better_than_chance)
    return fmt::format("The model is NOT better than chance ({}): a circuit would mean nothing.\n",
                       chance);
  std::string text = fmt::format("The model is better than chance ({}).\n", chance);
  if (!check.corruption_matters)
    text += "The corruption does NOT lower the metric: try another one (--corruption).\n";
  return text;
}

Json check_json(const TaskCheck& check) {
  return {{"accuracy", {{"clean", check.clean_accuracy}, {"corrupt", check.corrupt_accuracy}}},
          {"chance", check.chance},
          {"p_value", check.p_value},
          {"better_than_chance", check.better_than_chance},
          {"corruption_matters", check.corruption_matters},
          {"metric",
           {{"clean", estimate_json(check.clean)},
            {"corrupt", estimate_json(check.corrupt)},
            {"difference", estimate_json(check.difference)}}}};
}

std::string estimate_text(const Estimate& value) {
  return fmt::format("{:.3f} +- {:.3f}", value.mean, value.error);
}

Json estimate_json(const Estimate& value) {
  return {{"mean", value.mean}, {"standard_error", value.error}};
}

}  // namespace filigree::cli

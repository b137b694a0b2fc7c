// filigree logit-attribution: what each part of a model adds to a logit or a difference of logits.
#include "filigree/analyze/lens/logit_attribution.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/circuits/task_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "apps/cli/program/token_input.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

using study::FigureStyle;
using study::LoadedTask, study::TaskSelection;

namespace {

// A part of the stream that no tap names is an error of the analysis unless it is rounding.
constexpr double kRounding = 1e-3;

struct AttributionCommand {
  std::vector<std::string> models;
  TaskSelection selection;
  std::string prompt;
  std::vector<std::string> answers, wrong;
  std::int64_t top = 15;
  std::string figure;
  FigureStyle style;
};

struct AttributedModel {
  std::string model, label;
  std::optional<LoadedTask> task;
  std::optional<TaskCheck> check;  // with a task
  LogitAttribution found;
};

TaskPrompt prompt_of(const AttributionCommand& command, const Tokenizer& tokenizer,
                     const ModelConfig& config, const std::string& model) {
  TaskPrompt prompt;
  prompt.text = {command.prompt, "", command.answers, command.wrong};
  prompt.clean = encode_text(tokenizer, command.prompt, "the prompt");
  require(!prompt.clean.empty(), "the prompt is empty; attribution needs at least one token");
  require(prompt.length() <= config.context,
          "the prompt has {} tokens, more than the context of {} of '{}'", prompt.clean.size(),
          config.context, printable(model));
  check_ids(prompt.clean, config.vocabulary, model);
  for (const std::string& text : command.answers)
    prompt.answers.push_back(single_token(tokenizer, text, "--answer", config));
  for (const std::string& text : command.wrong)
    prompt.wrong.push_back(single_token(tokenizer, text, "--wrong", config));
  return prompt;
}

AttributedModel attribute(const std::string& name, const std::string& label,
                          const AttributionCommand& command, const Session& session) {
  const Tokenizer tokenizer = open_tokenizer(model_folder(name).string());
  const ModelConfig config = read_model_config(model_folder(name));
  AttributedModel result;
  result.model = name, result.label = label;
  std::vector<TaskPrompt> prompts;
  if (command.prompt.empty()) {
    result.task = study::load_task(command.selection, tokenizer, &config, session.options().seed);
    prompts = result.task->prompts.prompts;
  } else {
    prompts = {prompt_of(command, tokenizer, config, name)};
  }
  const std::unique_ptr<Model> model =
      load_model(model_folder(name), {.placement = session.placement()});
  if (result.task)
    result.check = check_task(score(*model, prompts, Metric::kLogitDifference,
                                    [](std::size_t) { throw_if_interrupted(); }),
                              prompts);
  Progress bar(std::cerr,
               session.progress(label, "prompts", static_cast<std::int64_t>(prompts.size())));
  AttributionOptions options;
  options.progress = [&](std::size_t done) {
    throw_if_interrupted();
    bar.update(static_cast<std::int64_t>(done));
  };
  result.found = attribute_logits(*model, prompts, options);
  bar.finish();
  return result;
}

// Sums over all parts of a kind, prompt by prompt.
Estimate sum_of(const LogitAttribution& found, const std::vector<PartKind>& kinds) {
  std::vector<double> sums(found.total.size(), 0.0);
  for (std::size_t p = 0; p < found.parts.size(); ++p)
    if (std::find(kinds.begin(), kinds.end(), found.parts[p].kind) != kinds.end())
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found.contributions[p][i];
  return estimate(sums);
}

struct KindSum {
  const char* name;
  std::vector<PartKind> kinds;
};

std::vector<KindSum> kind_sums() {
  return {{"embedding", {PartKind::kEmbedding}},
          {"positions", {PartKind::kPositions}},
          {"heads", {PartKind::kHead}},
          {"MLPs", {PartKind::kMlp}},
          {"biases", {PartKind::kAttentionBias, PartKind::kOutputBias}},
          {"rest", {PartKind::kRest}}};
}

std::string signed_text(const Estimate& value, bool errors) {
  return errors ? fmt::format("{:+.3f} +- {:.3f}", value.mean, value.error)
                : fmt::format("{:+.3f}", value.mean);
}

std::string what_text(const AttributionCommand& command) {
  if (command.prompt.empty())
    return fmt::format("{}: mean logit of the answers less that of the wrong ones",
                       printable(command.selection.name));
  const auto list = [](const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts)
      all += (all.empty() ? "'" : ", '") + printable(text) + "'";
    return all;
  };
  return command.wrong.empty() ? fmt::format("logit of {}", list(command.answers))
                               : fmt::format("logit of {} less that of {}", list(command.answers),
                                             list(command.wrong));
}

std::string attribution_text(const AttributionCommand& command,
                             const std::vector<AttributedModel>& models) {
  std::string text = what_text(command) + "\n";
  for (const AttributedModel& model : models) {
    const LogitAttribution& found = model.found;
    const bool errors = found.total.size() > 1;
    text += fmt::format("\n{}\n", printable(model.label));
    if (model.task) text += dropped_text(model.task->prompts) + verdict_text(*model.check);
    Table sums({{""}, {"contribution", Align::kRight}});
    for (const KindSum& kind : kind_sums()) {
      const Estimate sum = sum_of(found, kind.kinds);
      const bool shown = std::string_view(kind.name) != "rest" || std::abs(sum.mean) > kRounding;
      if (shown) sums.add({kind.name, signed_text(sum, errors)});
    }
    sums.add({"sum", signed_text(estimate(found.total), errors)});
    text += "\n" + sums.text(2) + "\n";
    Table parts({{"", Align::kRight}, {"part"}, {"contribution", Align::kRight}});
    const std::vector<std::size_t> order = found.order();
    for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(command.top)); ++i)
      parts.add({std::to_string(i + 1), name_of(found.parts[order[i]]),
                 signed_text(found.of(order[i]), errors)});
    if (command.top > 0) text += parts.text(2);
  }
  return text;
}

std::string_view kind_name(PartKind kind) {
  switch (kind) {
    case PartKind::kEmbedding: return "embedding";
    case PartKind::kPositions: return "positions";
    case PartKind::kHead: return "head";
    case PartKind::kAttentionBias: return "attention_bias";
    case PartKind::kMlp: return "mlp";
    case PartKind::kRest: return "rest";
    case PartKind::kOutputBias: return "output_bias";
  }
  return "unknown";
}

Json attribution_json(const AttributedModel& model) {
  Json parts = Json::array(), sums = Json::object();
  for (std::size_t p = 0; p < model.found.parts.size(); ++p) {
    const Part& part = model.found.parts[p];
    const Estimate value = model.found.of(p);
    parts.push_back({{"part", name_of(part)},
                     {"kind", kind_name(part.kind)},
                     {"layer", part.layer < 0 ? Json() : Json(part.layer)},
                     {"head", part.head < 0 ? Json() : Json(part.head)},
                     {"contribution", value.mean},
                     {"standard_error", value.error}});
  }
  for (const KindSum& kind : kind_sums())
    sums[kind.name] = study::to_json(sum_of(model.found, kind.kinds));
  Json json = {{"model", model.model},
               {"prompts", model.found.total.size()},
               {"total", study::to_json(estimate(model.found.total))},
               {"sums", sums},
               {"parts", parts}};
  if (model.task) {
    json["fit"] = study::fit_json(model.task->prompts);
    json["check"] = study::to_json(*model.check);
  }
  return json;
}

void draw(const AttributionCommand& command, const std::vector<AttributedModel>& models) {
  figure::LabelledMaps maps;
  maps.title = "Direct logit attribution";
  maps.scale_label = command.prompt.empty() || !command.wrong.empty()
                         ? "contribution to the logit difference"
                         : "contribution to the logit";
  for (const AttributedModel& model : models) {
    std::int64_t layers = 0, heads = 0;
    for (const Part& part : model.found.parts)
      layers = std::max(layers, part.layer + 1), heads = std::max(heads, part.head + 1);
    figure::MapPanel panel;
    panel.title =
        fmt::format("{}: {}", model.label, signed_text(estimate(model.found.total), false));
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
    maps.panels.push_back(std::move(panel));
  }
  maps.caption = fmt::format(
      "{}, at the last token; {}the scale of the final norm held fixed. Embeddings and biases make "
      "up the rest of each sum.",
      what_text(command),
      models[0].found.total.size() > 1
          ? fmt::format("mean over {} prompts; ", models[0].found.total.size())
          : std::string());
  study::save_figure(&maps, command.figure, command.style);
}

void check_options(const AttributionCommand& command) {
  const bool task = !command.selection.name.empty();
  if (task == !command.prompt.empty())
    throw UsageError("give either --task NAME, or --prompt TEXT and --answer TOKEN");
  if (!command.prompt.empty() && command.answers.empty())
    throw UsageError("--prompt needs --answer: whose logit is it to be?");
  if (task && (!command.answers.empty() || !command.wrong.empty()))
    throw UsageError("--answer and --wrong go with --prompt; a task has its own");
}

void run_attribution(const AttributionCommand& command, Session& session) {
  check_options(command);
  study::check_figure_file(command.figure);
  for (const std::string& model : command.models) model_folder(model);
  catch_interrupts();
  const std::vector<std::string> labels = short_names(command.models);
  std::vector<AttributedModel> models;
  for (std::size_t i = 0; i < command.models.size(); ++i)
    models.push_back(attribute(command.models[i], labels[i], command, session));
  for (const AttributedModel& model : models)
    if (model.check && !model.check->better_than_chance) session.set_exit_code(kOutOfReach);
  if (!command.figure.empty()) draw(command, models);
  if (!session.json()) {
    session.print(attribution_text(command, models));
    return;
  }
  Json list = Json::array();
  for (const AttributedModel& model : models) list.push_back(attribution_json(model));
  session.print_json({{"of", what_text(command)},
                      {"out", command.figure.empty() ? Json() : Json(command.figure)},
                      {"models", list}});
}

}  // namespace

void add_logit_attribution(Program& program) {
  const auto command = std::make_shared<AttributionCommand>();
  CLI::App& app =
      program.add({"logit-attribution",
                   "What each head and MLP adds directly to a logit.",
                   {"filigree logit-attribution gpt2 --task ioi --out heads.svg",
                    "filigree logit-attribution dense sparse --task greater-than --json",
                    "filigree logit-attribution gpt2 --prompt \"Hot and\" --answer \" cold\""},
                   Computes::kOnDevice},
                  [command](Session& session) { run_attribution(*command, session); });
  app.add_option("MODEL", command->models, "model folders or names")->required();
  app.add_option("--task", command->selection.name, "name of a task (see task list) or JSONL file")
      ->type_name("TASK");
  app.add_option("--prompt", command->prompt, "one text instead of a task")->type_name("TEXT");
  for (const bool right : {true, false})
    app.add_option(right ? "--answer" : "--wrong", right ? command->answers : command->wrong,
                   right ? "token whose logit counts, with the space before it; may come again"
                         : "token whose logit is taken off; may come again")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("TEXT");
  add_task_options(app, command->selection, false);
  app.add_option("--top", command->top, "parts listed for each model")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->figure, command->style);
}

}  // namespace filigree::cli

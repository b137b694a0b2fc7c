// filigree task: what tasks there are, what their prompts look like, and whether a model can do
// one.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <span>

#include "apps/cli/circuits/task_corpus.h"
#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kShownPrompts = 3;

struct TaskCommand {
  std::string action;
  std::string model;
  study::TaskSelection selection;
  CorpusCommand corpus;
};

void list_tasks(const Session& session) {
  if (session.json()) return session.print_json(study::task_list_json());
  std::string text;
  for (const TaskDefinition& task : task_definitions()) {
    text += fmt::format("{}: {} ({}{})\n", task.name, task.description, name_of(task.metric),
                        task.from_text ? ", --task-text FILE" : "");
    for (const TaskCorruption& corruption : task.corruptions)
      text += fmt::format("    {:<14} {}\n", corruption.name, corruption.description);
  }
  session.print(text);
}

// A few of a list, so that a hundred years do not fill the page.
std::string some(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), kShown); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : " ", printable(texts[i]));
  return texts.size() > kShown ? fmt::format("{} and {} more", text, texts.size() - kShown) : text;
}

std::string token_text(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += (text.empty() ? "" : "|") + tokenizer.token_text(id);
  return text;
}

void show_prompt(const TaskPrompt& prompt, const Tokenizer& tokenizer, std::string& text) {
  Table table({{""}, {""}});
  table.add({"clean", token_text(tokenizer, prompt.clean)});
  table.add({"corrupt", token_text(tokenizer, prompt.corrupt)});
  table.add({"answer", some(prompt.text.answers)});
  table.add({"wrong", some(prompt.text.wrong)});
  text += table.text() + "\n";
}

std::string task_line(const study::LoadedTask& task) {
  const std::string text = task.text.empty() ? "" : fmt::format(", text {}", printable(task.text));
  return fmt::format("{}: {}, corruption {}{}\n", printable(task.prompts.task), task.description,
                     task.prompts.corruption, text);
}

void show_task(const TaskCommand& command, const Session& session) {
  const Tokenizer tokenizer = open_tokenizer(command.model);
  std::filesystem::path folder = command.model;
  if (const auto named = study::find_named_model(command.model)) folder = *named;
  const study::LoadedTask task =
      study::load_task(study::choose_text(command.selection, std::span(&folder, 1)), tokenizer,
                       nullptr, session.options().seed);
  if (session.json()) return session.print_json(to_json(task));
  std::string text = task_line(task) + "\n";
  for (const TaskPrompt& prompt : task.prompts.prompts) show_prompt(prompt, tokenizer, text);
  session.print(text + study::dropped_text(task.prompts));
}

void check_model(const TaskCommand& command, Session& session) {
  study::find_task(command.selection.name);  // before the model is read
  const study::Context context = session.context();
  const study::LoadedModel model = std::move(study::load_models({command.model}, context)[0]);
  const study::CheckedTask checked = study::check_model_on_task(command.selection, model, context);
  const auto& [name, task, check] = checked;
  if (!check.better_than_chance) session.set_exit_code(kOutOfReach);
  if (session.json()) return session.print_json(to_json(checked));
  Table table({{""}, {"clean", Align::kRight}, {"corrupt", Align::kRight}});
  table.add({std::string(name_of(task.metric)), study::estimate_text(check.clean),
             study::estimate_text(check.corrupt)});
  table.add({"accuracy", fmt::format("{:.1f} %", 100 * check.clean_accuracy),
             fmt::format("{:.1f} %", 100 * check.corrupt_accuracy)});
  session.print(task_line(task) + study::dropped_text(task.prompts) + "\n" + table.text() + "\n" +
                study::verdict_text(check, task.prompts));
}

void run_task(TaskCommand& command, const CLI::App& app, Session& session) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  if (command.action == "corpus") {
    if (!command.model.empty()) throw UsageError("task corpus takes no further arguments");
    if (given("--split")) command.corpus.split = command.selection.split;
    return run_corpus(command.corpus, session);
  }
  for (const char* option : {"--out", "--size", "--documents", "--mix"})
    if (given(option)) throw UsageError(fmt::format("{} goes with task corpus", option));
  if (command.action == "list") {
    if (!command.model.empty()) throw UsageError("task list takes no further arguments");
    return list_tasks(session);
  }
  if (command.model.empty())
    throw UsageError("MODEL is required: prompts are made for a model's tokenizer");
  if (command.selection.name.empty()) throw UsageError("TASK is required");
  if (command.action == "check") return check_model(command, session);
  if (!given("--prompts")) command.selection.prompts = kShownPrompts;
  show_task(command, session);
}

}  // namespace

void add_task(Program& program) {
  const auto command = std::make_shared<TaskCommand>();
  const auto app = std::make_shared<CLI::App*>();
  *app = &program.add({"task",
                       "List tasks, show their prompts, check a model on one, write their corpus.",
                       {"filigree task list", "filigree task show gpt2 ioi --prompts 5",
                        "filigree task check gpt2 greater-than",
                        "filigree task check gpt2 returning-word --task-text book.txt",
                        "filigree task check gpt2 my-task.jsonl --metric prob-diff --json",
                        "filigree task corpus", "filigree task corpus --size 10MB --out tasks.txt",
                        "filigree task corpus --documents 3 --mix addition=3,capital --out -"},
                       Computes::kOnDevice,
                       true},
                      [command, app](Session& session) { run_task(*command, **app, session); });
  CLI::App& options = **app;
  options
      .add_option("ACTION", command->action,
                  "list tasks, show prompts, check a model (exit code 3 when it is not better than "
                  "chance), or write the corpus of all tasks (its tasks are listed without --out)")
      ->required()
      ->check(one_of({"list", "show", "check", "corpus"}));
  options.add_option("MODEL", command->model,
                     "model folder or name; for show, a tokenizer is enough");
  options.add_option("TASK", command->selection.name,
                     "name of a task, or a JSONL file of lines {\"clean\", \"corrupt\", "
                     "\"answer\", \"wrong\"}");
  add_task_options(options, command->selection);
  add_corpus_options(options, command->corpus);
  program.add_knobs(options, knobs_of(command->selection));
}

}  // namespace filigree::cli

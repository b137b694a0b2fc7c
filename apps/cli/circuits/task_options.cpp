#include "apps/cli/circuits/task_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/choices.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kMostPrompts = 10000;

}  // namespace

void add_task_options(CLI::App& app, study::TaskSelection& selection, bool with_metric) {
  app.add_option("--corruption", selection.corruption,
                 "how prompts are corrupted (default the task's first; see task list)")
      ->type_name("NAME");
  app.add_option("--prompts", selection.prompts, "prompts of each task")
      ->check(whole_number(1, kMostPrompts))
      ->type_name("N")
      ->capture_default_str();
  if (with_metric)
    add_choice(app, "--metric", selection.metric, "what is measured (default the task's own)");
  add_choice(app, "--split", selection.split,
             "combinations that the corpus keeps from training, or not");
  app.add_option("--task-text", selection.text,
                 "text that the task's passages are drawn from, UTF-8, .xz or .zst, for tasks such "
                 "as returning-word (default held-out.txt of a model's folder, else of the bundled "
                 "model)")
      ->type_name("FILE");
  app.add_flag("--first-token", selection.first_token,
               "of answers of several tokens take the first instead of dropping the prompt");
}

}  // namespace filigree::cli

// filigree demo: the whole story on the two bundled models. Figures, data and one offline page go
// into a folder, a summary to the terminal.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/comparison_study.h"
#include "filigree/evaluation_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct DemoCommand {
  std::string dense, sparse;  // empty: the bundled pair
  std::string out = "demo";
  std::string text;
  study::DemoRequest request;
};

void run_command(const DemoCommand& command, const Session& session) {
  if (command.dense.empty() != command.sparse.empty())
    throw UsageError("give DENSE and SPARSE, or neither for the bundled pair");
  const bool bundled = command.dense.empty();
  const std::vector<std::string> models = {bundled ? study::kReferenceDense : command.dense,
                                           bundled ? study::kReferenceSparse : command.sparse};
  study::DemoRequest request = command.request;
  request.folder = command.out;
  request.made = {{"command", session.command_line()}};
  if (!command.text.empty())
    request.prose = study::EvaluationText{read_text(command.text), source_name(command.text)};
  catch_interrupts();
  const study::Context context = session.context();
  const study::DemoResult result =
      study::run(request, study::load_models(models, context), context);
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(text_of(result));
}

}  // namespace

void add_demo(Program& program) {
  const auto command = std::make_shared<DemoCommand>();
  study::DemoRequest& request = command->request;
  CLI::App& app = program.add(
      {"demo",
       "Compare the bundled dense and sparse model: losses, maps, circuits, one report.",
       {"filigree demo", "filigree demo --out comparison --text my-prose.txt",
        "filigree demo mine mine-sparse --task ioi,my-task.jsonl"},
       Computes::kOnDevice},
      [command](Session& session) { run_command(*command, session); });
  app.add_option("DENSE", command->dense, "model folder or name (default the bundled pair)");
  app.add_option("SPARSE", command->sparse,
                 "model folder or name, of the same shape and tokenizer");
  app.add_option("--out", command->out, "folder of the report, figures, tables and data")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--text", command->text,
                 "UTF-8 text to measure the loss of prose on; - for stdin (default the one beside "
                 "the dense model)")
      ->type_name("FILE");
  app.add_option("--max-tokens", request.tokens, "tokens of each held-out text")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--task", request.tasks, "tasks or JSONL files of tasks, with commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK")
      ->default_str("ioi,greater-than");
  app.add_option("--prompts", request.task_prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_formats(app, request.formats);
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli

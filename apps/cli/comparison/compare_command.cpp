// filigree compare: a dense model and its sparse twin on the same prompts, as a folder of figures,
// tables and data with one offline page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/attention/prompt_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "filigree/comparison_study.h"

namespace filigree::cli {
namespace {

struct CompareCommand {
  std::string dense, sparse, out;
  PromptOptions prompts;
  study::ComparisonRequest request;
  std::vector<std::string> tasks;
  study::TaskSelection task;          // how the prompts of each are made
  std::vector<std::string> features;  // of DENSE and SPARSE
};

study::ComparisonRequest request_of(const CompareCommand& command, const Session& session) {
  study::ComparisonRequest request = command.request;
  request.folder = command.out;
  request.prompts = prompt_request(command.prompts);
  request.made = {{"command", session.command_line()}};
  if (!command.features.empty() && command.features.size() != 2)
    throw UsageError("--features takes the transcoders of DENSE and SPARSE, one after the other");
  request.features = command.features;
  for (const std::string& name : command.tasks) {
    request.tasks.push_back(command.task);
    request.tasks.back().name = name;
    const TaskDefinition* task = study::find_task(name);
    if (task == nullptr || !task->from_text) request.tasks.back().text.clear();
  }
  check_request(request);
  return request;
}

void run_command(const CompareCommand& command, const Session& session) {
  const study::ComparisonRequest request = request_of(command, session);
  catch_interrupts();
  const study::Context context = session.context();
  const std::string& sparse =
      command.sparse.empty() && !context.adapter.empty() ? command.dense : command.sparse;
  if (sparse.empty())
    throw UsageError("compare takes two models, or one and the --adapter that makes it sparse");
  const std::vector<study::LoadedModel> models =
      study::load_models({command.dense, sparse}, context);
  const study::ComparisonResult result = study::run(request, models, context);
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(text_of(result));
}

}  // namespace

void add_compare(Program& program) {
  const auto command = std::make_shared<CompareCommand>();
  study::ComparisonRequest& request = command->request;
  CLI::App& app = program.add(
      {"compare",
       "A dense and a sparse model side by side: figures, tables, one offline page.",
       {"filigree compare dense sparse --out comparison",
        "filigree compare dense sparse --out ab --prompts-file prompts.txt --order role",
        "filigree compare dense sparse --out comparison --data shards --samples 50",
        "filigree compare dense sparse --out comparison --task ioi,greater-than",
        "filigree compare dense sparse --out ab --features d s",
        "filigree compare a b --out ab --theme print --set strips=L5H1,L6H0"},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_command(*command, session); });
  app.add_option("DENSE", command->dense, "model folder or name")->required();
  app.add_option("SPARSE", command->sparse,
                 "model folder or name, of the same shape and tokenizer (may be left out with "
                 "--adapter, which DENSE then gets)");
  app.add_option("--out", command->out, "folder of figures, tables, data and report.html")
      ->required()
      ->type_name("DIR");
  add_prompt_options(app, command->prompts);
  app.add_option("--heads", request.heads, "heads of the grid: L5H1,L6H*,3.0-3.5 or * for all")
      ->check(head_list())
      ->type_name("HEADS")
      ->capture_default_str();
  add_choice(app, "--order", request.order, "of the grid");
  app.add_option(
         "--task", command->tasks,
         "tasks whose circuits of heads, edges and attention edges are compared too; several with "
         "commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK");
  app.add_option("--prompts", command->task.prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--task-text", command->task.text,
                 "text that tasks such as returning-word are drawn from (default held-out.txt of a "
                 "model's folder, else of the bundled model)")
      ->type_name("FILE");
  app.add_flag("--first-token", command->task.first_token,
               "of a task's answers of several tokens take the first");
  app.add_option("--level", request.effort.level, "share of a task's effect to explain")
      ->check(number_above(0, 1))
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--features", command->features,
                 "transcoders of DENSE and SPARSE, to trace a prompt through: folders, files or "
                 "names")
      ->expected(2)
      ->type_name("DIR");
  app.add_option("--target", request.trace.target,
                 "token that the trace explains (default the likeliest next tokens)")
      ->type_name("TEXT");
  add_figure_formats(app, request.formats);
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli

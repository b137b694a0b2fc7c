// filigree compare: a dense model and its sparse twin on the same prompts, as a folder of figures,
// tables and data with one offline page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/attention/attention_report.h"
#include "apps/cli/circuits/circuit_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/comparison/comparison.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "filigree/analyze/statistics/statistics_report.h"

namespace filigree::cli {
namespace {

struct CompareCommand {
  CompareOptions options;
  std::vector<std::string> tasks;
  study::TaskSelection task;  // how the prompts of each are made
  double level = 90;
};

void run_compare(const CompareCommand& command, const Session& session) {
  CompareOptions options = command.options;
  options.effort.level = command.level / 100;
  for (const std::string& name : command.tasks) {
    options.tasks.push_back(command.task);
    options.tasks.back().name = name;
  }
  Comparison comparison(options, session);
  comparison.write({});
  const Compared& compared = comparison.compared();
  if (session.json()) {
    Json json = comparison.summary();
    json["out"] = options.out;
    json["files"] = comparison.files();
    session.print_json(json);
    return;
  }
  const std::vector<std::string>& labels = comparison.labels();
  std::string tasks;
  for (const study::TaskCircuits& task : compared.tasks) tasks += task_circuits_text(task) + "\n";
  session.print(role_table(compared.analysed, compared.heads) + "\n" +
                comparison_table(compared.comparison, labels[0], labels[1], false) + "\n" + tasks +
                fmt::format("{} files; the report is {}\n", comparison.files().size(),
                            comparison.page().string()));
}

}  // namespace

void add_compare(Program& program) {
  const auto command = std::make_shared<CompareCommand>();
  CompareOptions* options = &command->options;
  CLI::App& app = program.add(
      {"compare",
       "A dense and a sparse model side by side: figures, tables, one offline page.",
       {"filigree compare dense sparse --out comparison",
        "filigree compare dense sparse --out comparison --file prompts.txt --order role",
        "filigree compare dense sparse --out comparison --data shards --samples 50",
        "filigree compare dense sparse --out comparison --task ioi,greater-than",
        "filigree compare a b --out ab --format pdf --theme print --strips L5H1,L6H0"},
       Computes::kOnDevice},
      [command](Session& session) { run_compare(*command, session); });
  app.add_option("DENSE", options->dense, "model folder or name")->required();
  app.add_option("SPARSE", options->sparse, "model folder or name, of the same shape and tokenizer")
      ->required();
  app.add_option("--out", options->out, "folder for figures, tables, data and report.html")
      ->required()
      ->type_name("DIR");
  app.add_option("--title", options->title, "of the grid and the page")->type_name("TEXT");
  add_prompt_options(app, options->prompts);
  app.add_option("--heads", options->heads, "heads of the grid: L5H1,L6H*,3.0-3.5 or * for all")
      ->type_name("HEADS")
      ->capture_default_str();
  app.add_option("--order", options->order,
                 "of the grid: layer, role, or heads by importance, such as L9H1,L3H0")
      ->type_name("ORDER")
      ->capture_default_str();
  app.add_option("--strips", options->strips,
                 "heads drawn large side by side (default the three that changed most)")
      ->type_name("HEADS");
  app.add_option("--scatter", options->scatter,
                 "heads of the scatter matrix (default five that differ)")
      ->type_name("HEADS");
  app.add_option(
         "--task", command->tasks,
         "tasks whose circuits of heads, edges and attention edges are compared too; several with "
         "commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK");
  app.add_option("--task-prompts", command->task.prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--first-token", command->task.first_token,
               "of a task's answers of several tokens take the first");
  app.add_option("--level", command->level, "share of a task's effect to explain, in percent")
      ->check(number_above(0, 100))
      ->type_name("PERCENT")
      ->default_str("90");
  add_figure_formats(app, options->formats);
  add_figure_options(app, options->style);
  app.add_flag("--maps", options->data, "write every map of every prompt too, as data/maps.npz");
}

}  // namespace filigree::cli

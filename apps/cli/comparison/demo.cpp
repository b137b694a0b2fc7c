// filigree demo: the whole story on the two bundled models. Figures, data and one offline page go
// into a folder, a summary to the terminal.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/circuits/circuit_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/comparison_study.h"
#include "filigree/evaluation_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct DemoCommand {
  std::string out = "demo";
  std::string text;
  study::DemoRequest request;
};

std::string with_error(const std::string& value, const std::optional<double>& error) {
  return error ? fmt::format("{} ±{:.3f}", value, *error) : value;
}

// One row a text and model, each number with its standard error.
std::string models_table(const std::vector<study::TextLosses>& losses) {
  Table table({{"text"},
               {"tokens", Align::kRight},
               {"model"},
               {"loss", Align::kRight},
               {"change", Align::kRight},
               {"active edges", Align::kRight},
               {"keys/query", Align::kRight},
               {"living heads", Align::kRight},
               {"their keys/query"}});
  for (const study::TextLosses& text : losses)
    for (std::size_t m = 0; m < 2; ++m) {
      const Evaluation &evaluation = text.models[m].evaluation, &first = text.models[0].evaluation;
      const Connectivity open = evaluation.connectivity();
      const LivingHeads living = evaluation.living();
      table.add({m == 0 ? text.text : "",
                 m == 0 ? with_thousands(static_cast<std::uint64_t>(evaluation.total.tokens)) : "",
                 printable(text.models[m].label),
                 with_error(fmt::format("{:.3f}", evaluation.loss()), evaluation.loss_error()),
                 m == 0 ? ""
                        : with_error(fmt::format("{:+.3f}", evaluation.loss() - first.loss()),
                                     change_error(evaluation, first)),
                 percent(open.active_edges), fmt::format("{:.3g}", open.keys_per_query),
                 study::count_text(living), study::keys_text(living)});
    }
  return table.text() + "±: one standard error, over windows\n";
}

// "15 of 16": so few prompts say no more than their number.
std::string right_text(const study::ModelCircuit& circuits) {
  const auto prompts = static_cast<double>(circuits.task.prompts.prompts.size());
  return fmt::format("{:.0f} of {:.0f}", circuits.check.clean_accuracy * prompts, prompts);
}

std::string tasks_table(const std::vector<study::TaskCircuits>& tasks, double level) {
  using study::CircuitsOfKind, study::Parts;
  Table table({{"task"},
               {"model"},
               {"right", Align::kRight},
               {fmt::format("for {:g} %: heads", 100 * level), Align::kRight},
               {"ratio", Align::kRight},
               {"edges", Align::kRight},
               {"ratio", Align::kRight},
               {"attention edges", Align::kRight},
               {"ratio", Align::kRight}});
  for (const study::TaskCircuits& task : tasks) {
    const CircuitsOfKind &heads = *task.find(Parts::kHeads), &edges = *task.find(Parts::kEdges),
                         &cells = *task.find(Parts::kAttentionEdges);
    for (std::size_t m = 0; m < heads.size(); ++m)
      table.add({m == 0 ? printable(task_title(task.task())) : "", printable(heads[m].label),
                 right_text(heads[m]), size_text(heads[m]), ratio_text(heads[0], heads[m]),
                 size_text(edges[m]), ratio_text(edges[0], edges[m]), size_text(cells[m]),
                 ratio_text(cells[0], cells[m])});
  }
  return table.text();
}

// What is there with no part kept at all: where that is much, the parts are not what does the task.
std::string none_kept_table(const std::vector<study::TaskCircuits>& tasks) {
  Table table({{"with none kept"},
               {"model"},
               {"heads", Align::kRight},
               {"edges", Align::kRight},
               {"attention edges", Align::kRight}});
  for (const study::TaskCircuits& task : tasks)
    for (std::size_t m = 0; m < task.kinds[0].size(); ++m) {
      std::vector<std::string> row = {m == 0 ? printable(task_title(task.task())) : "",
                                      printable(task.kinds[0][m].label)};
      for (const study::CircuitsOfKind& circuits : task.kinds)
        row.push_back(none_kept_text(circuits[m]));
      table.add(row);
    }
  return table.text();
}

std::string text_of(const study::DemoResult& result) {
  const study::ComparisonResult& comparison = result.comparison;
  std::string text = models_table(comparison.held_out) + "\n";
  if (!comparison.tasks.empty())
    text += tasks_table(comparison.tasks, result.level) + "\n" + none_kept_table(comparison.tasks) +
            "\n";
  for (const study::TaskLeftOut& task : comparison.tasks_left_out)
    text += fmt::format("{} left out: {}\n", printable(task.task), task.why);
  return text + fmt::format("{} files in {}; the report is {}\n", comparison.files.size(),
                            format_seconds(result.seconds), comparison.page().string());
}

void run_command(const DemoCommand& command, const Session& session) {
  study::DemoRequest request = command.request;
  request.folder = command.out;
  request.made = {{"command", session.command_line()}};
  if (!command.text.empty())
    request.prose = study::EvaluationText{read_text(command.text), source_name(command.text)};
  catch_interrupts();
  const study::DemoResult result = study::run_demo(request, session.context());
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
        "filigree demo --dense mine --sparse mine-sparse --task ioi,my-task.jsonl"},
       Computes::kOnDevice},
      [command](Session& session) { run_command(*command, session); });
  app.add_option("--out", command->out, "folder of the report, figures, tables and data")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--dense", request.dense, "model folder or name")
      ->type_name("MODEL")
      ->capture_default_str();
  app.add_option("--sparse", request.sparse, "model folder or name, of the same shape")
      ->type_name("MODEL")
      ->capture_default_str();
  app.add_option("--text", command->text,
                 "UTF-8 text to measure the loss of prose on; - for stdin (default the one beside "
                 "the dense model)")
      ->type_name("FILE");
  app.add_option("--tokens", request.tokens, "tokens of each held-out text")
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
  app.add_option("--task-prompts", request.task_prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_formats(app, request.formats);
  add_figure_options(app, request.style);
}

}  // namespace filigree::cli

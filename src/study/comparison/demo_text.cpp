#include <fmt/format.h>

#include "base/table.h"
#include "filigree/comparison_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

std::string value_with_error(const std::string& value, const std::optional<double>& error) {
  return error ? fmt::format("{} ±{:.3f}", value, *error) : value;
}

// One row a text and model, each number with its standard error.
std::string models_table(const std::vector<TextLosses>& losses) {
  Table table({{"text"},
               {"tokens", Align::kRight},
               {"model"},
               {"loss", Align::kRight},
               {"change", Align::kRight},
               {"active edges", Align::kRight},
               {"keys/query", Align::kRight},
               {"living heads", Align::kRight},
               {"their keys/query"}});
  for (const TextLosses& text : losses)
    for (std::size_t m = 0; m < 2; ++m) {
      const Evaluation &evaluation = text.models[m].evaluation, &first = text.models[0].evaluation;
      const Connectivity open = evaluation.connectivity();
      const LivingHeads living = evaluation.living();
      table.add(
          {m == 0 ? text.text : "",
           m == 0 ? with_thousands(static_cast<std::uint64_t>(evaluation.total.tokens)) : "",
           printable(text.models[m].label),
           value_with_error(fmt::format("{:.3f}", evaluation.loss()), evaluation.loss_error()),
           m == 0 ? ""
                  : value_with_error(fmt::format("{:+.3f}", evaluation.loss() - first.loss()),
                                     change_error(evaluation, first)),
           percent(open.active_edges), fmt::format("{:.3g}", open.keys_per_query),
           count_text(living), keys_text(living)});
    }
  return table.text() + "±: one standard error, over windows\n";
}

// "15 of 16": so few prompts say no more than their number.
std::string right_text(const ModelCircuit& circuits) {
  const auto prompts = static_cast<double>(circuits.task.prompts.prompts.size());
  return fmt::format("{:.0f} of {:.0f}", circuits.check.clean_accuracy * prompts, prompts);
}

std::string tasks_table(const std::vector<TaskCircuits>& tasks, double level) {
  Table table({{"task"},
               {"model"},
               {"right", Align::kRight},
               {fmt::format("for {:g} %: heads", 100 * level), Align::kRight},
               {"ratio", Align::kRight},
               {"edges", Align::kRight},
               {"ratio", Align::kRight},
               {"attention edges", Align::kRight},
               {"ratio", Align::kRight}});
  for (const TaskCircuits& task : tasks) {
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
std::string none_kept_table(const std::vector<TaskCircuits>& tasks) {
  Table table({{"with none kept"},
               {"model"},
               {"heads", Align::kRight},
               {"edges", Align::kRight},
               {"attention edges", Align::kRight}});
  for (const TaskCircuits& task : tasks)
    for (std::size_t m = 0; m < task.kinds[0].size(); ++m) {
      std::vector<std::string> row = {m == 0 ? printable(task_title(task.task())) : "",
                                      printable(task.kinds[0][m].label)};
      for (const CircuitsOfKind& circuits : task.kinds) row.push_back(none_kept_text(circuits[m]));
      table.add(row);
    }
  return table.text();
}

}  // namespace

std::string text_of(const DemoResult& result) {
  const ComparisonResult& comparison = result.comparison;
  std::string text = models_table(comparison.held_out) + "\n";
  if (!comparison.tasks.empty())
    text += tasks_table(comparison.tasks, result.level) + "\n" + none_kept_table(comparison.tasks) +
            "\n";
  for (const TaskLeftOut& task : comparison.tasks_left_out)
    text += fmt::format("{} left out: {}\n", printable(task.task), task.why);
  return text + fmt::format("{} files in {}; the report is {}\n", comparison.files.size(),
                            format_seconds(result.seconds), comparison.page().string());
}

}  // namespace filigree::study

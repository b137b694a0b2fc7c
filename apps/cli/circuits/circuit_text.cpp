#include "apps/cli/circuits/circuit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/circuits/task_text.h"
#include "apps/cli/program/table.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

using study::CircuitsOfKind;
using study::FoundCircuit;
using study::ModelCircuit;
using study::Parts;
using study::SearchOptions;

namespace {

constexpr std::size_t kMembersShown = 40;

std::string count_text(const FoundCircuit& found) {
  const auto whole = static_cast<std::uint64_t>(found.part_count);
  return static_cast<double>(whole) == found.part_count ? with_thousands(whole)
                                                        : fmt::format("{:.1f}", found.part_count);
}

std::string sizes_table(const CircuitsOfKind& circuits) {
  const SearchOptions& options = circuits[0].options;
  Table table(
      {{"model"},
       {"accuracy", Align::kRight},
       {std::string(name_of(circuits[0].task.metric)) + " clean", Align::kRight},
       {"corrupt", Align::kRight},
       {fmt::format("{} for {:g} %", plural_of(options.parts), 100 * options.level), Align::kRight},
       {"of", Align::kRight},
       {"area", Align::kRight},
       {"ratio", Align::kRight}});
  for (const ModelCircuit& circuit : circuits)
    table.add({printable(circuit.label),
               fmt::format("{:.1f} %", 100 * circuit.check.clean_accuracy),
               estimate_text(circuit.check.clean), estimate_text(circuit.check.corrupt),
               size_text(circuit), circuit.found ? count_text(*circuit.found) : "",
               circuit.found ? fmt::format("{:.3f}", circuit.found->curve.area()) : "",
               ratio_text(circuits[0], circuit)});
  return table.text();
}

std::string parts_table(const ModelCircuit& circuit, std::size_t top) {
  const FoundCircuit& found = *circuit.found;
  const bool cells = circuit.options.parts == Parts::kAttentionEdges;
  Table table({{"", Align::kRight},
               {"part"},
               {"drop without it", Align::kRight},
               {cells ? "" : "effect of these", Align::kRight}});
  for (std::size_t i = 0; i < std::min(top, found.parts.size()); ++i) {
    std::string effect;
    for (const CurvePoint& point : found.curve.points)
      if (!cells && point.kept == i + 1) effect = fmt::format("{:.1f} %", 100 * point.effect);
    table.add(
        {std::to_string(i + 1), found.parts[i].name, estimate_text(found.parts[i].drop), effect});
  }
  return table.text(2);
}

// The circuit itself, where it is small enough to read.
std::string members_text(const ModelCircuit& circuit) {
  const std::vector<std::string>& members = circuit.found->members;
  if (members.empty()) return "";
  std::string text = "  circuit:";
  for (std::size_t i = 0; i < std::min(members.size(), kMembersShown); ++i)
    text += (i == 0 ? " " : ", ") + members[i];
  if (members.size() > kMembersShown)
    text += fmt::format(" and {} more", members.size() - kMembersShown);
  return text + "\n";
}

// Cells say where heads look; where both prompts make them look alike, the values do the work.
std::string hint_text(const ModelCircuit& circuit) {
  if (circuit.options.parts != Parts::kAttentionEdges || circuit.size() != 0u ||
      circuit.options.replacement != Replacement::kCorrupt)
    return "";
  return "  no attention edge is needed: the corrupt maps look where the clean ones do; "
         "--replacement "
         "zero\n  asks which edges carry something\n";
}

std::string agreement_text(const FoundCircuit& found) {
  if (!found.agreement) return "";
  const Agreement& a = *found.agreement;
  return fmt::format(
      "  published circuit ({}): {} of its {} parts are among the {} found: precision {:.2f}, "
      "recall {:.2f}; area under the ROC curve {:.3f}\n",
      found.published->source, a.common, a.published, a.kept, a.precision, a.recall, a.area);
}

}  // namespace

std::string size_text(const ModelCircuit& circuit) {
  if (!circuit.found) return "none claimed";
  const std::optional<std::size_t> size = circuit.size();
  return size ? with_thousands(*size) : "level not reached";
}

std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<double> ratio = study::size_ratio(first, circuit);
  return &first == &circuit || !ratio ? "" : fmt::format("{:.2f}x", *ratio);
}

std::string circuit_text(const CircuitsOfKind& circuits, std::size_t top) {
  std::string text =
      fmt::format("{}: {}, corruption {}\n\n", printable(circuits[0].task.prompts.task),
                  circuits[0].task.description, circuits[0].task.prompts.corruption);
  text += sizes_table(circuits);
  for (const ModelCircuit& circuit : circuits) {
    text += fmt::format("\n{}\n", printable(circuit.label));
    text += dropped_text(circuit.task.prompts) + verdict_text(circuit.check);
    if (!circuit.found) continue;
    text += "\n" + parts_table(circuit, top);
    const std::string more =
        members_text(circuit) + hint_text(circuit) + agreement_text(*circuit.found);
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

std::string task_circuits_text(const study::TaskCircuits& found) {
  std::vector<Table::Column> columns = {{"model"}, {"accuracy", Align::kRight}};
  for (const CircuitsOfKind& circuits : found.kinds) {
    columns.push_back({std::string(plural_of(circuits[0].options.parts)), Align::kRight});
    columns.push_back({"ratio", Align::kRight});
  }
  Table table(columns);
  for (std::size_t m = 0; m < found.kinds[0].size(); ++m) {
    const ModelCircuit& model = found.kinds[0][m];
    std::vector<std::string> row = {printable(model.label),
                                    fmt::format("{:.1f} %", 100 * model.check.clean_accuracy)};
    for (const CircuitsOfKind& circuits : found.kinds) {
      row.push_back(size_text(circuits[m]));
      row.push_back(ratio_text(circuits[0], circuits[m]));
    }
    table.add(row);
  }
  return fmt::format("{}: {}; parts for {:g} % of the effect\n",
                     printable(found.task().prompts.task), found.task().description,
                     100 * found.kinds[0][0].options.level) +
         table.text();
}

}  // namespace filigree::cli

#include "study/circuits/circuit_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace filigree::study {

DataTable sizes_table_of(std::span<const CircuitsOfKind> kinds) {
  DataTable table = {
      "Circuits", {"task", "model", "parts", "accuracy", "level", "size", "of", "times fewer"}, {}};
  for (const CircuitsOfKind& circuits : kinds)
    for (const ModelCircuit& circuit : circuits) {
      const std::optional<std::size_t> size = circuit.size();
      const std::optional<double> ratio = size_ratio(circuits[0], circuit);
      table.rows.push_back(
          {task_title(circuit.task), circuit.label, std::string(plural_of(circuit.options.parts)),
           fmt::format("{:.3f}", circuit.check.clean_accuracy),
           fmt::format("{:g}", circuit.options.level), size ? fmt::format("{}", *size) : "",
           circuit.found ? fmt::format("{:.10g}", circuit.found->part_count) : "",
           &circuit != &circuits[0] && ratio ? fmt::format("{:.2f}", *ratio) : ""});
    }
  return table;
}

DataTable parts_table_of(const CircuitsOfKind& circuits, std::size_t most) {
  DataTable table = {
      fmt::format("The parts of the task {} by importance", task_title(circuits[0].task)),
      {"model", "rank", "part", "score", "standard error", "kept"},
      {}};
  for (const ModelCircuit& circuit : circuits) {
    if (!circuit.found) continue;
    const FoundCircuit& found = *circuit.found;
    const bool cells = circuit.options.parts == Parts::kAttentionEdges;
    const std::set<std::string> members(found.members.begin(), found.members.end());
    const std::size_t count = most == 0 ? found.parts.size() : std::min(most, found.parts.size());
    for (std::size_t i = 0; i < count; ++i) {
      const CircuitPart& part = found.parts[i];
      table.rows.push_back({circuit.label, std::to_string(i + 1), part.name,
                            fmt::format("{:.6g}", part.score.mean),
                            part.score.error ? fmt::format("{:.6g}", *part.score.error) : "",
                            cells                         ? ""
                            : members.contains(part.name) ? "yes"
                                                          : "no"});
    }
  }
  return table;
}

}  // namespace filigree::study

#include <fmt/core.h>

#include <cmath>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/report.h"

namespace filigree {

namespace {

// "12 of 144 (none kept: 3 %)"
std::string cell_text(const CircuitSize& kind, std::size_t m) {
  if (kind.of[m] == 0) return "none claimed";
  const bool carried = m >= kind.carried.size() || kind.carried[m];
  std::string text = kind.sizes[m] ? fmt::format("{} of {}", with_thousands(*kind.sizes[m]),
                                                 with_thousands(kind.of[m]))
                     : carried     ? "not reached"
                                   : "do not carry it";
  if (m < kind.without.size() && kind.without[m])
    text += fmt::format(" (none kept: {:.0f} %)",
                        std::abs(*kind.without[m]) < 5e-3 ? 0.0 : 100 * *kind.without[m]);
  return text;
}

}  // namespace

ReportTask circuit_section(const CircuitSection& section) {
  require(!section.models.empty(), "report: the task '{}' has no models", printable(section.task));
  ReportTask task;
  task.name = section.task;
  task.description = section.description;
  task.facts = section.facts;
  task.figures = section.figures;
  task.heads = section.heads;
  task.columns.push_back(fmt::format("for {:g} %", 100 * section.level));
  for (std::size_t m = 0; m < section.models.size(); ++m) {
    task.columns.push_back(section.models[m]);
    if (m > 0)
      task.columns.push_back(section.models.size() == 2 ? "ratio"
                                                        : "ratio to " + section.models[0]);
  }
  for (const CircuitSize& kind : section.sizes) {
    require(kind.sizes.size() == section.models.size() && kind.of.size() == section.models.size(),
            "report: {} sizes of {} for {} models", kind.sizes.size(), printable(kind.parts),
            section.models.size());
    std::vector<std::string> row = {kind.parts};
    for (std::size_t m = 0; m < kind.sizes.size(); ++m) {
      const std::optional<std::size_t>& size = kind.sizes[m];
      row.push_back(cell_text(kind, m));
      if (m == 0) continue;
      row.push_back(size && *size > 0 && kind.sizes[0]
                        ? fmt::format("{:.2f}", static_cast<double>(*kind.sizes[0]) /
                                                    static_cast<double>(*size))
                        : "");
    }
    task.rows.push_back(std::move(row));
  }
  return task;
}

}  // namespace filigree

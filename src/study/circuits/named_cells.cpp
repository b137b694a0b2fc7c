#include <fmt/format.h>

#include <map>

#include "analyze/task/positions.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"

namespace filigree::study {

std::string NamedCell::name() const {
  return fmt::format("{} {} <- {}", head_name(head), query, key);
}

std::vector<ScoredCell> named_cells(const CellScores& scores,
                                    const std::vector<TaskPrompt>& prompts) {
  require(scores.prompts.size() == prompts.size(), "attention edges: scores of {} prompts for {}",
          scores.prompts.size(), prompts.size());
  std::map<NamedCell, std::vector<double>> drops;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    std::vector<std::string> places;
    for (std::int64_t i = 0; i < prompts[p].length(); ++i)
      places.push_back(prompts.size() == 1 ? token_place(prompts[p], i)
                                           : role_place(prompts[p], i));
    const CellScores::OfPrompt& of_prompt = scores.prompts[p];
    for (std::size_t i = 0; i < of_prompt.cells.size(); ++i) {
      const AttentionCell& cell = of_prompt.cells[i];
      std::vector<double>& all = drops[{{cell.layer, cell.head},
                                        places.at(static_cast<std::size_t>(cell.query)),
                                        places.at(static_cast<std::size_t>(cell.key))}];
      all.resize(prompts.size(), 0.0);
      all[p] += of_prompt.drops[i];
    }
  }
  std::vector<ScoredCell> named;
  for (auto& [cell, values] : drops) named.push_back({cell, std::move(values)});
  return named;
}

}  // namespace filigree::study

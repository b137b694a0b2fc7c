#include "study/circuits/head_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/task/positions.h"

namespace filigree::study {
namespace {

bool has_head(const figure::GridPanel& panel, const HeadId& wanted) {
  return std::any_of(panel.heads.begin(), panel.heads.end(),
                     [&](const figure::GridHead& head) { return head.head == wanted; });
}

}  // namespace

void mark_strong_edges(figure::GridPanel& panel, const ModelCircuit& circuit, const Model& model,
                       const std::string& text) {
  const std::vector<TaskPrompt>& prompts = circuit.task.prompts.prompts;
  const auto prompt = std::find_if(prompts.begin(), prompts.end(),
                                   [&](const TaskPrompt& one) { return one.text.clean == text; });
  if (prompt == prompts.end() || circuit.task.metric == Metric::kAccuracy) return;
  PatchOptions options;
  options.metric = circuit.task.metric;
  options.replacement = Replacement::kZero;
  const CellScores scores = attributed_cell_scores(model, {*prompt}, 0, options);
  std::map<HeadId, std::size_t> strongest;
  const std::vector<double>& drops = scores.prompts[0].drops;
  for (std::size_t i = 0; i < drops.size(); ++i) {
    const AttentionCell& cell = scores.prompts[0].cells[i];
    const auto [place, fresh] = strongest.try_emplace({cell.layer, cell.head}, i);
    if (!fresh && std::abs(drops[i]) > std::abs(drops[place->second])) place->second = i;
  }
  for (figure::GridHead& head : panel.heads) {
    const auto found = strongest.find(head.head);
    if (found == strongest.end()) continue;
    const AttentionCell& cell = scores.prompts[0].cells[found->second];
    head.marks = {{static_cast<std::size_t>(cell.query), static_cast<std::size_t>(cell.key)}};
    head.note =
        fmt::format("{} \u2190 {}", role_place(*prompt, cell.query), role_place(*prompt, cell.key));
  }
}

std::size_t align_heads(figure::AttentionGrid& grid) {
  if (grid.panels.size() < 2) return 0;
  std::vector<HeadId> shared;
  for (const figure::GridHead& head : grid.panels[0].heads)
    if (std::all_of(grid.panels.begin(), grid.panels.end(),
                    [&](const figure::GridPanel& panel) { return has_head(panel, head.head); }))
      shared.push_back(head.head);
  for (figure::GridPanel& panel : grid.panels)
    std::stable_sort(panel.heads.begin(), panel.heads.end(),
                     [&](const figure::GridHead& a, const figure::GridHead& b) {
                       return std::find(shared.begin(), shared.end(), a.head) <
                              std::find(shared.begin(), shared.end(), b.head);
                     });
  return shared.size();
}

}  // namespace filigree::study

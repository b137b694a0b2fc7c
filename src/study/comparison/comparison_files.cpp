#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyze/statistics/statistics_report.h"
#include "base/atomic_file.h"
#include "base/csv.h"
#include "base/folders.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "study/circuits/circuit_tables.h"
#include "study/comparison/comparison_output.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStrips = 3, kScatterHeads = 5;

std::size_t slot_of(const std::vector<HeadId>& heads, const HeadId& head) {
  return static_cast<std::size_t>(std::find(heads.begin(), heads.end(), head) - heads.begin());
}

// Puts a panel of the grid into the order that was asked for, with the heads' roles.
void arrange_grid(const ComparisonRequest& request, const ComparisonPlan& plan,
                  const ComparisonResult& result, std::size_t model, figure::AttentionGrid& grid) {
  std::vector<HeadRole> roles;
  for (const HeadId& head : plan.grid)
    roles.push_back(result.models[model].roles[slot_of(result.heads, head)]);
  std::vector<std::size_t> order(plan.grid.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (request.order == GridOrder::kRole)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return roles[a].name < roles[b].name; });
  else
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return slot_of(plan.asked, plan.grid[a]) < slot_of(plan.asked, plan.grid[b]);
    });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return slot_of(plan.first, plan.grid[a]) < slot_of(plan.first, plan.grid[b]);
  });
  arrange_panel(grid, model, roles, order);
}

// Those worth seeing side by side: of the heads that live in both models the ones whose peak weight
// changed most; where there are none, the first.
std::vector<HeadId> strip_heads(const ComparisonResult& result) {
  std::vector<HeadId> heads;
  for (const ChangedHead& changed : most_changed(result.comparison, Statistic::kPeak, kStrips))
    heads.push_back(changed.head);
  if (heads.empty())
    heads.assign(result.heads.begin(), result.heads.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                  kStrips, result.heads.size())));
  return heads;
}

// The slots that were asked for, or some that are evenly spread over the clustering, so that they
// differ.
std::vector<std::size_t> scatter_slots(const ComparisonPlan& plan, const ComparisonResult& result) {
  std::vector<std::size_t> slots;
  for (const HeadId& head : plan.scatter) slots.push_back(slot_of(result.heads, head));
  if (!slots.empty()) return slots;
  // Heads that are dead in the second model vary in no panel of it: living ones are shown.
  const std::vector<bool> living = result.models[1].statistics->living();
  std::vector<std::size_t> order;
  for (const std::size_t slot : result.models[1].pairs->clustering.order)
    if (living[slot]) order.push_back(slot);
  if (order.size() < 2) order = result.models[1].pairs->clustering.order;
  const std::size_t count = std::min(kScatterHeads, order.size());
  for (std::size_t i = 0; i < count; ++i)
    slots.push_back(order[i * (order.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  std::sort(slots.begin(), slots.end());
  return slots;
}

// One figure in every format.
void write_figure(const ComparisonRequest& request, const FigureInput& input,
                  const std::string& name, ComparisonFolder& folder) {
  for (const figure::Format format : request.formats)
    save_figure(input, folder.add(fmt::format("figures/{}.{}", name, name_of(format))),
                request.style);
}

void write_strips(const ComparisonRequest& request, const ComparisonPlan& plan,
                  const ComparisonResult& result, const ComparisonMaps& maps,
                  ComparisonFolder& folder) {
  const std::vector<HeadId> heads = plan.strips.empty() ? strip_heads(result) : plan.strips;
  std::map<HeadId, std::vector<float>> first = maps.first_maps(0, heads);
  std::map<HeadId, std::vector<float>> second = maps.first_maps(1, heads);
  for (const HeadId& head : heads) {
    const figure::HeadStrip strip = head_strip_of(head, result.models, std::move(first.at(head)),
                                                  std::move(second.at(head)), result.prompts[0]);
    write_figure(request, &strip, head_name(head), folder);
  }
}

std::string roles_csv(const ComparisonResult& result) {
  std::string csv = "model,layer,head,role,confidence";
  for (std::size_t p = 0; p < kPatterns; ++p)
    csv += fmt::format(",{}", name_of(static_cast<Pattern>(p)));
  csv += '\n';
  for (std::size_t m = 0; m < result.models.size(); ++m)
    for (std::size_t slot = 0; slot < result.heads.size(); ++slot) {
      const HeadRole& role = result.models[m].roles[slot];
      csv +=
          fmt::format("{},{},{},{},{}", csv_field(result.models[m].label), result.heads[slot].layer,
                      result.heads[slot].head, role.name, role.confidence);
      for (const double score : result.models[m].role_scores[slot].score)
        csv += "," + csv_number(score);
      csv += '\n';
    }
  return csv;
}

// How many heads have each role, most frequent in the first model first.
DataTable role_counts(const ComparisonResult& result) {
  std::map<std::string, std::vector<std::size_t>> counts;
  for (std::size_t m = 0; m < result.models.size(); ++m)
    for (const HeadRole& role : result.models[m].roles) {
      counts[role.name].resize(result.models.size(), 0);
      ++counts[role.name][m];
    }
  std::vector<std::pair<std::string, std::vector<std::size_t>>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  DataTable table = {fmt::format("Heads of each role, of {}", result.heads.size()), {"role"}, {}};
  for (const AnalysedModel& model : result.models) table.columns.push_back(model.label);
  for (const auto& [role, heads] : rows) {
    table.rows.push_back({role});
    for (const std::size_t count : heads) table.rows.back().push_back(std::to_string(count));
  }
  return table;
}

// Of the models as wholes, to the digits that a paper has; the CSV has layers and heads too.
DataTable statistics_of_models(const ComparisonResult& result) {
  DataTable table = {
      fmt::format("Attention statistics, means over {} and {}",
                  counted(result.heads.size(), "head"), counted(result.prompts.size(), "prompt")),
      {"over", "statistic", result.models[0].label, result.models[1].label, "change", "from", "to",
       "p"},
      {}};
  for (const ComparedStatistic& row : result.comparison) {
    if (row.group.scope != HeadGroup::Scope::kModel) continue;
    const auto number = [](double value) { return fmt::format("{:.4g}", value); };
    table.rows.push_back({std::string(heading_of(row.over)), heading_of(row.statistic),
                          number(row.first), number(row.second), number(row.change),
                          row.interval ? number(row.interval->low) : "",
                          row.interval ? number(row.interval->high) : "", number(row.p)});
  }
  return table;
}

}  // namespace

ComparisonFolder::ComparisonFolder(const OutputFolder& root) : root_(root.path()) {
  for (const char* part : {"figures", "tables", "data"}) make_folders(root_ / part);
}

std::string page_title(const ComparisonRequest& request, const ComparisonResult& result) {
  if (!request.layout.title.empty()) return request.layout.title;
  return fmt::format("{} and {}", result.models[0].label, result.models[1].label);
}

void write_figures(const ComparisonRequest& request, const ComparisonPlan& plan,
                   const ComparisonResult& result, ComparisonMaps& maps, ComparisonFolder& folder,
                   std::uint64_t seed) {
  const Prompt& prompt = result.prompts[0];
  const HeadGroup& whole = result.models[0].statistics->groups().front();
  const auto edges = [&](std::size_t m) {
    return 100.0 * result.models[m].statistics->mean(whole, Statistic::kActiveEdges);
  };
  for (std::size_t m = 0; m < result.models.size(); ++m)
    arrange_grid(request, plan, result, m, maps.grid());
  figure::AttentionGrid& grid = maps.grid();
  grid.title = page_title(request, result);
  grid.width = request.layout.width;
  grid.columns = request.layout.columns;
  if (grid.columns == 0 && request.order == GridOrder::kLayer && plan.first.empty())
    grid.columns = plan.columns;
  grid.tokens = prompt.tokens;
  grid.prompt = fmt::format("Prompt: {}", fmt::join(prompt.tokens, ""));
  grid.metric = fmt::format("Active edges over {}: {:.3g} % ({}), {:.3g} % ({})",
                            counted(result.prompts.size(), "prompt"), edges(0),
                            result.models[0].label, edges(1), result.models[1].label);
  const figure::CorrelationMap correlation = correlation_map_of(result.models);
  const figure::StatisticsBars statistics = statistics_bars_of(result.models, result.comparison);
  write_figure(request, &grid, "grid", folder);
  write_figure(request, &correlation, "correlation", folder);
  // Of pairs: a single head has none.
  if (const auto slots = scatter_slots(plan, result); slots.size() > 1) {
    const figure::ScatterMatrix scatter = scatter_matrix_of(result.models, slots, seed);
    write_figure(request, &scatter, "scatter", folder);
  }
  write_figure(request, &statistics, "statistics", folder);
  write_strips(request, plan, result, maps, folder);
}

void write_tables(const ComparisonResult& result, ComparisonFolder& folder) {
  write_file_atomically(folder.add("tables/roles.csv"), roles_csv(result));
  write_file_atomically(folder.add("tables/statistics.csv"),
                        comparison_csv(result.comparison, result.connections));
  write_file_atomically(folder.add("tables/roles.tex"), latex_of(role_counts(result)));
  write_file_atomically(folder.add("tables/statistics.tex"),
                        latex_of(statistics_of_models(result)));
  std::vector<CircuitsOfKind> kinds;
  for (const TaskCircuits& found : result.tasks)
    kinds.insert(kinds.end(), found.kinds.begin(), found.kinds.end());
  if (!kinds.empty()) {
    const DataTable sizes = sizes_table_of(kinds);
    write_file_atomically(folder.add("tables/circuits.csv"), csv_of(sizes));
    write_file_atomically(folder.add("tables/circuits.tex"), latex_of(sizes));
  }
  // Names may be any bytes; JSON must be UTF-8.
  write_file_atomically(
      folder.add("data/summary.json"),
      findings_json(result).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<ReportTask> write_tasks(const ComparisonRequest& request,
                                    const ComparisonResult& result, Models models,
                                    ComparisonFolder& folder) {
  std::vector<ReportTask> sections;
  std::map<std::string, int> names;  // files of one name in several folders are numbered
  for (const TaskCircuits& found : result.tasks) {
    const TaskFigures figures = task_figures(found, models);
    sections.push_back(task_section(found, figures, request.style));
    std::string name = task_file_part(found.task());
    if (const int number = ++names[name]; number > 1) name += fmt::format("-{}", number);
    if (figures.curves) write_figure(request, &*figures.curves, name + "-curves", folder);
    if (figures.grid) write_figure(request, &*figures.grid, name + "-heads", folder);
    if (figures.drawing) write_figure(request, &*figures.drawing, name + "-edges", folder);
    if (figures.tokens) write_figure(request, &*figures.tokens, name + "-attention-edges", folder);
    if (const CircuitsOfKind* edges = found.find(Parts::kEdges))
      for (const DotFile& dot : dots_of(*edges))
        write_file_atomically(folder.add(fmt::format("data/{}-edges-{}.dot", name, dot.name)),
                              dot.text);
  }
  return sections;
}

}  // namespace filigree::study

#include "apps/cli/attention/attention_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/cli/program/table.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kPairsShown = 10;
constexpr double kSure = 0.05;  // changes with a smaller p are marked

std::string number(double value) {
  return std::abs(value) >= 100.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// "sink 40, previous 7": most frequent first.
std::string role_counts(const study::AnalysedModel& model) {
  std::map<std::string, std::size_t> counts;
  for (const HeadRole& role : model.roles) ++counts[role.name];
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [role, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", role, count);
  return text;
}

std::vector<Table::Column> statistic_columns(const std::string& first) {
  std::vector<Table::Column> columns = {{first}};
  for (std::size_t s = 0; s < kStatistics; ++s)
    columns.push_back({heading_of(static_cast<Statistic>(s)), Align::kRight});
  return columns;
}

}  // namespace

std::string role_table(const std::vector<study::AnalysedModel>& models) {
  const std::vector<HeadId>& heads = models[0].heads;
  std::vector<Table::Column> columns = {{"head"}};
  for (const study::AnalysedModel& model : models) {
    columns.push_back({models.size() > 1 ? model.label : "role"});
    columns.push_back({"conf", Align::kRight});
  }
  if (models.size() == 1) columns.push_back({"evidence"});
  Table table(columns);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    std::vector<std::string> row = {head_name(heads[h])};
    for (const study::AnalysedModel& model : models) {
      const HeadRole& role = model.roles[h];
      row.push_back(role.name);
      row.push_back(fmt::format("{:.2f}", role.confidence));
    }
    if (models.size() == 1) row.push_back(evidence_text(models[0].roles[h]));
    table.add(std::move(row));
  }
  std::string text = table.text() + "\n";
  for (const study::AnalysedModel& model : models)
    text += fmt::format("{}: {}\n", model.label, role_counts(model));
  return text;
}

std::string statistics_table(const study::AnalysedModel& model, bool by_head) {
  Table table(statistic_columns(model.label));
  const AttentionStatistics& statistics = *model.statistics;
  for (const HeadGroup& group : statistics.groups()) {
    if (group.scope == HeadGroup::Scope::kHead && !by_head) continue;
    std::vector<std::string> row = {group.name()};
    for (std::size_t s = 0; s < kStatistics; ++s)
      row.push_back(number(statistics.mean(group, static_cast<Statistic>(s))));
    table.add(std::move(row));
  }
  return table.text();
}

std::string comparison_table(const std::vector<ComparedStatistic>& rows,
                             const std::vector<study::AnalysedModel>& models, bool by_head) {
  Table whole({{"statistic"},
               {models[0].label, Align::kRight},
               {models[1].label, Align::kRight},
               {"change", Align::kRight},
               {"95 % interval", Align::kRight},
               {"p", Align::kRight}});
  std::vector<Table::Column> columns = {{"change"}};
  for (std::size_t s = 0; s < kStatistics; ++s) {
    const auto statistic = static_cast<Statistic>(s);
    columns.push_back(
        {heading_of(statistic) + (is_share(statistic) ? ", points" : ""), Align::kRight});
  }
  Table changes(columns);
  std::vector<std::string> cells;
  bool any_least = false;
  for (const ComparedStatistic& row : rows) {
    // Shares are per cent, and their differences points.
    const bool share = is_share(row.statistic);
    const double times = share ? 100 : 1;
    if (row.group.scope == HeadGroup::Scope::kModel) {
      const auto value = [&](double x) { return number(times * x) + (share ? " %" : ""); };
      any_least = any_least || row.at_least_p();
      whole.add({heading_of(row.statistic), value(row.first), value(row.second),
                 fmt::format("{:+.3g}{}", times * row.change, share ? " points" : ""),
                 row.interval ? fmt::format("{:+.3g} to {:+.3g}", times * row.interval->low,
                                            times * row.interval->high)
                              : "-",
                 fmt::format("{:.2g}{}", row.p, row.at_least_p() ? " (least)" : "")});
      continue;
    }
    if (row.group.scope == HeadGroup::Scope::kHead && !by_head) continue;
    if (cells.empty()) cells.push_back(row.group.name());
    cells.push_back(fmt::format("{:+.3g}{}", times * row.change, row.p < kSure ? "*" : " "));
    if (cells.size() == kStatistics + 1) changes.add(std::exchange(cells, {}));
  }
  std::string text = whole.text();
  if (any_least)
    text += fmt::format("least: no change of {} prompts can have a smaller p\n",
                        models[0].statistics->prompts());
  return text + "\n" + changes.text() + fmt::format("* p < {}\n", kSure);
}

std::string pair_table(const study::AnalysedModel& model) {
  const HeadPairs& pairs = *model.pairs;
  const std::size_t n = pairs.heads.size();
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) order.emplace_back(a, b);
  const auto strength = [&](const auto& pair) {
    return std::abs(pairs.pearson[pair.first * n + pair.second]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return strength(a) > strength(b); });
  Table table({{model.label}, {"and"}, {"Pearson", Align::kRight}, {"Spearman", Align::kRight}});
  for (std::size_t p = 0; p < std::min(kPairsShown, order.size()); ++p) {
    const auto [a, b] = order[p];
    table.add({head_name(pairs.heads[a]), head_name(pairs.heads[b]),
               fmt::format("{:+.3f}", pairs.pearson[a * n + b]),
               fmt::format("{:+.3f}", pairs.spearman[a * n + b])});
  }
  std::string text =
      table.text() + fmt::format("\n{} pairs over {} cells", with_thousands(order.size()),
                                 with_thousands(static_cast<std::uint64_t>(pairs.cells)));
  if (pairs.cells_used < pairs.cells)
    text += fmt::format(", {} of them used",
                        with_thousands(static_cast<std::uint64_t>(pairs.cells_used)));
  text += fmt::format("; ranks within {} cells", with_thousands(pairs.points.size()));
  if (!pairs.constant.empty()) text += fmt::format("; {} heads do not vary", pairs.constant.size());
  return text + "\n";
}

}  // namespace filigree::cli


#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/table.h"
#include "filigree/attention_study.h"
#include "filigree/evaluation_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr std::size_t kPairsShown = 10;
// Of layers and heads as many statistics as a line holds; JSON and CSV have all.
constexpr std::size_t kColumns = static_cast<std::size_t>(Statistic::kEmptyRows) + 1;
constexpr std::size_t kChangedShown = 3;
constexpr double kSure = 0.05;  // changes with a smaller p are marked

std::string cell_text(double value) {
  return std::abs(value) >= 100.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// "sink 40, previous 7": most frequent first.
std::string role_counts(const AnalysedModel& model) {
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
  for (std::size_t s = 0; s < kColumns; ++s)
    columns.push_back({heading_of(static_cast<Statistic>(s)), Align::kRight});
  return columns;
}

// Of the models as wholes, over one choice of heads and rows.
std::string whole_table(const std::vector<ComparedStatistic>& rows,
                        const std::vector<AnalysedModel>& models, Over over) {
  Table whole({{std::string(heading_of(over))},
               {models[0].label, Align::kRight},
               {models[1].label, Align::kRight},
               {"change", Align::kRight},
               {"95 % interval", Align::kRight},
               {"p", Align::kRight}});
  bool any = false;
  for (const ComparedStatistic& row : rows) {
    if (row.group.scope != HeadGroup::Scope::kModel || row.over != over) continue;
    any = true;
    // Shares are per cent, and their differences points.
    const bool share = is_share(row.statistic);
    const double times = share ? 100 : 1;
    const auto value = [&](double x) { return cell_text(times * x) + (share ? " %" : ""); };
    whole.add({heading_of(row.statistic), value(row.first), value(row.second),
               fmt::format("{:+.3g}{}", times * row.change, share ? " points" : ""),
               row.interval ? fmt::format("{:+.3g} to {:+.3g}", times * row.interval->low,
                                          times * row.interval->high)
                            : "-",
               fmt::format("{:.2g}{}", row.p, row.at_least_p() ? " (least)" : "")});
  }
  return any ? whole.text() + "\n" : "";
}

// "direct connections kept: 31.2 % [28.0 %, 35.1 %] of 1,204"
std::string connections_text(const std::vector<KeptConnections>& connections) {
  for (const KeptConnections& row : connections)
    if (row.group.scope == HeadGroup::Scope::kModel)
      return fmt::format("direct connections kept: {}{} of {}\n", percent(row.kept),
                         row.interval ? fmt::format(" [{}, {}]", percent(row.interval->low),
                                                    percent(row.interval->high))
                                      : "",
                         with_thousands(static_cast<std::uint64_t>(row.connections)));
  return "";
}

std::string changed_heads_text(const std::vector<ComparedStatistic>& rows) {
  std::string text;
  for (const Statistic statistic :
       {Statistic::kPeak, Statistic::kDiagonalWeight, Statistic::kPreviousWeight}) {
    std::string heads;
    for (const ChangedHead& changed : most_changed(rows, statistic, kChangedShown))
      heads += fmt::format("{}{} {} -> {}", heads.empty() ? "" : ", ", head_name(changed.head),
                           cell_text(changed.first), cell_text(changed.second));
    if (!heads.empty())
      text += fmt::format("{} changed most in {}\n", heading_of(statistic), heads);
  }
  return text;
}

}  // namespace

std::string role_table(const std::vector<AnalysedModel>& models) {
  const std::vector<HeadId>& heads = models[0].heads;
  std::vector<Table::Column> columns = {{"head"}};
  for (const AnalysedModel& model : models) {
    columns.push_back({models.size() > 1 ? model.label : "role"});
    columns.push_back({"conf", Align::kRight});
  }
  if (models.size() == 1) columns.push_back({"evidence"});
  Table table(columns);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    std::vector<std::string> row = {head_name(heads[h])};
    for (const AnalysedModel& model : models) {
      const HeadRole& role = model.roles[h];
      row.push_back(role.name);
      row.push_back(fmt::format("{:.2f}", role.confidence));
    }
    if (models.size() == 1) row.push_back(evidence_text(models[0].roles[h]));
    table.add(std::move(row));
  }
  std::string text = table.text() + "\n";
  for (const AnalysedModel& model : models)
    text += fmt::format("{}: {}\n", model.label, role_counts(model));
  return text;
}

std::string statistics_table(const AnalysedModel& model, bool by_head) {
  Table table(statistic_columns(model.label));
  const AttentionStatistics& statistics = *model.statistics;
  for (const HeadGroup& group : statistics.groups()) {
    if (group.scope == HeadGroup::Scope::kHead && !by_head) continue;
    std::vector<std::string> row = {group.name()};
    for (std::size_t s = 0; s < kColumns; ++s)
      row.push_back(cell_text(statistics.mean(group, static_cast<Statistic>(s))));
    table.add(std::move(row));
  }
  std::vector<Table::Column> columns = {{model.label}};
  for (const Named<Over>& over : kNames<Over>)
    columns.push_back({std::string(heading_of(over.value)), Align::kRight});
  Table whole(columns);
  for (std::size_t s = 0; s < kStatistics; ++s) {
    std::vector<std::string> row = {heading_of(static_cast<Statistic>(s))};
    for (const Named<Over>& over : kNames<Over>) {
      const double mean =
          statistics.mean(statistics.groups()[0], static_cast<Statistic>(s), over.value);
      row.push_back(std::isnan(mean) ? "-" : cell_text(mean));
    }
    whole.add(std::move(row));
  }
  const LivingHeads living = statistics.living_heads();
  return table.text() + "\n" + whole.text() +
         fmt::format("living heads: {}; keys per query of those: {}\n", count_text(living),
                     keys_text(living));
}

std::string comparison_table(const std::vector<ComparedStatistic>& rows,
                             const std::vector<KeptConnections>& connections,
                             const std::vector<AnalysedModel>& models, bool by_head) {
  std::vector<Table::Column> columns = {{"change"}};
  for (std::size_t s = 0; s < kColumns; ++s) {
    const auto statistic = static_cast<Statistic>(s);
    columns.push_back(
        {heading_of(statistic) + (is_share(statistic) ? ", points" : ""), Align::kRight});
  }
  Table changes(columns);
  std::vector<std::string> cells;
  for (const ComparedStatistic& row : rows) {
    if (row.group.scope == HeadGroup::Scope::kModel || row.over != Over::kAll ||
        static_cast<std::size_t>(row.statistic) >= kColumns)
      continue;
    if (row.group.scope == HeadGroup::Scope::kHead && !by_head) continue;
    if (cells.empty()) cells.push_back(row.group.name());
    const double times = is_share(row.statistic) ? 100 : 1;
    cells.push_back(fmt::format("{:+.3g}{}", times * row.change, row.p < kSure ? "*" : " "));
    if (cells.size() == kColumns + 1) changes.add(std::exchange(cells, {}));
  }
  std::string text = whole_table(rows, models, Over::kAll) +
                     whole_table(rows, models, Over::kLivingHeadsAttendingRows);
  if (std::any_of(rows.begin(), rows.end(), [](const ComparedStatistic& row) {
        return row.group.scope == HeadGroup::Scope::kModel && row.at_least_p();
      }))
    text += fmt::format("least: no change of {} prompts can have a smaller p\n",
                        models[0].statistics->prompts());
  for (const AnalysedModel& model : models) {
    const LivingHeads living = model.statistics->living_heads();
    text += fmt::format("living heads of {}: {}; keys per query of those: {}\n", model.label,
                        count_text(living), keys_text(living));
  }
  return text + connections_text(connections) + changed_heads_text(rows) + "\n" + changes.text() +
         fmt::format("* p < {}\n", kSure);
}

std::string pair_table(const AnalysedModel& model) {
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

std::string text_of(const AttentionResult& result, bool by_head) {
  std::vector<std::string> parts;
  if (!result.interventions.empty()) parts.push_back(changed_text(result.interventions));
  if (!result.models[0].roles.empty()) parts.push_back(role_table(result.models));
  if (result.comparison)
    parts.push_back(
        comparison_table(*result.comparison, result.connections, result.models, by_head));
  else if (result.models[0].statistics)
    parts.push_back(statistics_table(result.models[0], by_head));
  for (const AnalysedModel& model : result.models)
    if (model.pairs) parts.push_back(pair_table(model));
  for (const std::filesystem::path& file : result.files)
    parts.push_back(fmt::format("{} of {} on {}: {}\n",
                                file.extension() == ".csv" ? "statistics" : name_of(result.kind),
                                counted(result.heads.size(), "head"),
                                counted(result.prompts.size(), "prompt"), file.string()));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace filigree::study

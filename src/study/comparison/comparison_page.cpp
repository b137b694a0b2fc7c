#include "filigree/study/comparison/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/base/strings.h"

namespace filigree::study {
namespace {

constexpr std::size_t kMostPrompts = 8;
// Weights in a page: 24 MB before compression.
constexpr double kMostCells = 12e6;
constexpr std::int64_t kLeastTokens = 16;

ReportPairs pairs_of(const std::string& measure, const CorrelationMatrix& matrix,
                     const HeadPairs& pairs) {
  const std::size_t n = pairs.heads.size();
  ReportPairs result{measure};
  result.order = pairs.clustering.order;
  for (std::size_t a = 0; a < n; ++a)
    result.matrix.emplace_back(matrix.begin() + static_cast<std::ptrdiff_t>(a * n),
                               matrix.begin() + static_cast<std::ptrdiff_t>((a + 1) * n));
  // A head that never varies correlates with nothing: shown as undefined.
  for (const std::size_t slot : pairs.constant)
    for (std::size_t other = 0; other < n; ++other)
      result.matrix[slot][other] = result.matrix[other][slot] =
          std::numeric_limits<double>::quiet_NaN();
  return result;
}

NamedTexts facts_of(const ComparisonResult& result, std::size_t m) {
  const AnalysedModel& model = result.models[m];
  const HeadGroup& whole = model.statistics->groups().front();
  NamedTexts facts = {
      {"parameters", with_thousands(static_cast<std::uint64_t>(model.parameters))},
      {"active edges of the prompts",
       fmt::format("{:.3g} %", 100.0 * model.statistics->mean(whole, Statistic::kActiveEdges))},
      {"keys per query",
       fmt::format("{:.3g}", model.statistics->mean(whole, Statistic::kKeysPerQuery))}};
  // Edges and keys of the prompts are there already; those are shorter.
  for (const TextLosses& text : result.held_out) {
    const Evaluation& evaluation = text.models[m].evaluation;
    const Connectivity open = evaluation.connectivity();
    facts.emplace_back(
        "held-out " + text.text,
        fmt::format("loss {:.3f}, {} of the edges active, {:.3g} keys per query", evaluation.loss(),
                    percent(open.active_edges), open.keys_per_query));
  }
  return facts;
}

ReportModel model_of(const ComparisonResult& result, std::size_t m, const ModelConfig& config) {
  const AnalysedModel& analysed = result.models[m];
  const AttentionStatistics& statistics = *analysed.statistics;
  ReportModel model;
  model.name = analysed.label;
  model.layers = config.layers, model.heads = config.heads;
  model.facts = facts_of(result, m);
  for (const HeadRole& role : analysed.roles)
    model.by_head.push_back({role.name, role.confidence, {}});
  for (const HeadGroup& group : statistics.groups())
    if (group.scope == HeadGroup::Scope::kHead)
      for (std::size_t s = 0; s < kStatistics; ++s) {
        const auto statistic = static_cast<Statistic>(s);
        model.by_head[group.first].statistics.emplace(name_of(statistic),
                                                      statistics.mean(group, statistic));
      }
  model.pairs = {pairs_of("Pearson", analysed.pairs->pearson, *analysed.pairs),
                 pairs_of("Spearman", analysed.pairs->spearman, *analysed.pairs)};
  return model;
}

ReportStatistic statistic_of(const ComparedStatistic& row) {
  ReportStatistic statistic{std::string(name_of(row.statistic)), heading_of(row.statistic)};
  if (row.statistic == Statistic::kActiveEdges) statistic.unit = "%";
  statistic.values = {row.first, row.second};
  statistic.change = row.change;
  if (row.interval) statistic.low = row.interval->low, statistic.high = row.interval->high;
  statistic.p = row.p;
  return statistic;
}

}  // namespace

PageMaps::PageMaps(std::size_t models, std::size_t heads, const std::vector<Prompt>& prompts)
    : heads_(heads), prompts_(std::min(kMostPrompts, prompts.size())), packed_(models) {
  const auto maps = static_cast<double>(models * heads * prompts_);
  tokens_ = std::max(kLeastTokens, static_cast<std::int64_t>(std::sqrt(2.0 * kMostCells / maps)));
}

void PageMaps::add(std::size_t model, std::span<const HeadMap> maps) {
  for (const HeadMap& map : maps) {
    if (map.prompt >= prompts_) return;
    if (!current_) current_ = std::make_unique<PackedMaps>();
    const std::int64_t n = std::min(map.length, tokens_);
    square_.resize(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(map.weights.begin() + i * map.length, n, square_.begin() + i * n);
    current_->add(square_, n);
    if (++seen_ == heads_) {
      packed_[model].push_back(current_->finish());
      current_.reset();
      seen_ = 0;
    }
  }
}

Report make_page(const std::string& title, const ComparisonResult& result,
                 std::span<const LoadedModel> models, const PageMaps& maps) {
  Report report;
  report.title = title;
  report.roles = names_of<Pattern>();
  for (std::size_t m = 0; m < models.size(); ++m)
    report.models.push_back(model_of(result, m, models[m].config()));
  for (std::size_t p = 0; p < maps.prompts(); ++p) {
    ReportPrompt prompt;
    prompt.tokens = result.prompts[p].tokens;
    if (static_cast<std::int64_t>(prompt.tokens.size()) > maps.tokens())
      prompt.tokens.resize(static_cast<std::size_t>(maps.tokens()));
    prompt.text = fmt::format("{}", fmt::join(prompt.tokens, ""));
    for (std::size_t m = 0; m < models.size(); ++m) prompt.maps.push_back(maps.packed(m, p));
    report.prompts.push_back(std::move(prompt));
  }
  for (const ComparedStatistic& row : result.comparison)
    if (row.group.scope == HeadGroup::Scope::kModel) report.statistics.push_back(statistic_of(row));
  return report;
}

}  // namespace filigree::study

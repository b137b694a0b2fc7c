#include "apps/cli/comparison/comparison_report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "apps/cli/attention/attention_report.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

// Weights in a page: 24 MB before compression.
constexpr double kMostCells = 12e6;
constexpr std::int64_t kLeastTokens = 16;

std::string joined(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, ""));
}

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

ReportModel model_of(const ReportSource& source, std::size_t m) {
  const AnalysedModel& analysed = source.analysed[m];
  const ModelConfig& config = source.models[m].config;
  const AttentionStatistics& statistics = *analysed.statistics;
  ReportModel model;
  model.name = analysed.label;
  model.layers = config.layers, model.heads = config.heads;
  const HeadGroup& whole = statistics.groups().front();
  model.facts = {
      {"parameters", with_thousands(static_cast<std::uint64_t>(source.parameters[m]))},
      {"active edges of the prompts",
       fmt::format("{:.3g} %", 100.0 * statistics.mean(whole, Statistic::kActiveEdges))},
      {"keys per query", fmt::format("{:.3g}", statistics.mean(whole, Statistic::kKeysPerQuery))}};
  if (!source.facts.empty())
    model.facts.insert(model.facts.end(), source.facts[m].begin(), source.facts[m].end());
  for (std::size_t slot = 0; slot < source.heads.size(); ++slot) {
    const HeadRole role = classify(analysed.roles[slot]);
    model.by_head.push_back({role.name, role.confidence, {}});
  }
  for (const HeadGroup& group : statistics.groups())
    if (group.scope == HeadGroup::Scope::kHead)
      for (std::size_t s = 0; s < kStatistics; ++s) {
        const auto statistic = static_cast<Statistic>(s);
        model.by_head[group.first].statistics.emplace(name_of(statistic),
                                                      statistics.mean(group, statistic));
      }
  if (analysed.pairs)
    model.pairs = {pairs_of("Pearson", analysed.pairs->pearson, *analysed.pairs),
                   pairs_of("Spearman", analysed.pairs->spearman, *analysed.pairs)};
  return model;
}

}  // namespace

void ReportMaps::add(std::span<const HeadMap> maps) {
  for (const HeadMap& map : maps) {
    if (map.prompt >= prompts_) return;
    if (!current_) current_ = std::make_unique<PackedMaps>();
    const std::int64_t n = std::min(map.length, tokens_);
    square_.resize(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(map.weights.begin() + i * map.length, n, square_.begin() + i * n);
    current_->add(square_, n);
    if (++seen_ == heads_) {
      packed_.push_back(current_->finish());
      current_.reset();
      seen_ = 0;
    }
  }
}

std::int64_t report_tokens(std::size_t models, std::size_t heads, std::size_t prompts) {
  const double maps = static_cast<double>(models * heads * prompts);
  return std::max(kLeastTokens, static_cast<std::int64_t>(std::sqrt(2.0 * kMostCells / maps)));
}

Report make_report(const ReportSource& source) {
  Report report;
  report.title = source.title;
  report.made = source.made;
  report.tasks = source.tasks;
  for (std::size_t p = 0; p < kPatterns; ++p)
    report.roles.emplace_back(name_of(static_cast<Pattern>(p)));
  for (std::size_t m = 0; m < source.models.size(); ++m)
    report.models.push_back(model_of(source, m));
  for (std::size_t p = 0; p < source.prompts.size(); ++p) {
    ReportPrompt prompt;
    prompt.tokens = source.prompts[p].tokens;
    if (static_cast<std::int64_t>(prompt.tokens.size()) > source.tokens)
      prompt.tokens.resize(static_cast<std::size_t>(source.tokens));
    prompt.text = joined(prompt.tokens);
    for (const std::vector<std::string>& of_model : source.maps)
      prompt.maps.push_back(of_model.at(p));
    report.prompts.push_back(std::move(prompt));
  }
  for (const ComparedStatistic& row : source.comparison) {
    if (row.group.scope != HeadGroup::Scope::kModel) continue;
    ReportStatistic statistic{std::string(name_of(row.statistic)), heading_of(row.statistic)};
    if (row.statistic == Statistic::kActiveEdges) statistic.unit = "%";
    statistic.values = {row.first, row.second};
    statistic.change = row.change;
    if (row.interval) statistic.low = row.interval->low, statistic.high = row.interval->high;
    statistic.p = row.p;
    report.statistics.push_back(std::move(statistic));
  }
  return report;
}

}  // namespace filigree::cli

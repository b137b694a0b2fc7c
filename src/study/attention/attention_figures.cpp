#include "filigree/study/attention/attention_figures.h"

#include <fmt/format.h>

#include <limits>

namespace filigree::study {
namespace {

constexpr double kScoreEnd = 10.0;  // scores beyond have the colour of the end
constexpr std::size_t kMostPoints = 20000;

std::string scale_label(MapKind kind) {
  switch (kind) {
    case MapKind::kScores: return "attention score";
    case MapKind::kGate: return "gate";
    case MapKind::kValueWeighted: return "value-weighted attention";
    default: return "attention weight";
  }
}

// Pearson's matrix with the rows of heads that never vary undefined, which they are.
std::vector<float> correlations(const HeadPairs& pairs) {
  std::vector<float> values(pairs.pearson.begin(), pairs.pearson.end());
  const std::size_t n = pairs.heads.size();
  for (const std::size_t slot : pairs.constant)
    for (std::size_t other = 0; other < n; ++other)
      values[slot * n + other] = values[other * n + slot] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

}  // namespace

MapGrid::MapGrid(MapKind kind, const std::vector<std::string>& titles) {
  if (kind == MapKind::kScores) grid_.scale = {figure::ScaleKind::kDifference, kScoreEnd};
  grid_.scale_label = scale_label(kind);
  for (const std::string& title : titles) grid_.panels.push_back({title, {}});
}

void MapGrid::add(std::size_t panel, const HeadId& head, std::span<const float> map,
                  std::int64_t length) {
  grid_.panels.at(panel).heads.push_back(grid_head(head, map, length, grid_.scale));
}

void MapGrid::arrange(std::size_t panel, const std::vector<HeadRole>& roles,
                      const std::vector<std::size_t>& order) {
  grid_.roles = names_of<Pattern>();
  std::vector<figure::GridHead>& heads = grid_.panels.at(panel).heads;
  for (std::size_t slot = 0; slot < heads.size(); ++slot)
    for (const Pattern pattern : roles.at(slot).patterns)
      heads[slot].roles.push_back(static_cast<std::size_t>(pattern));
  if (order.empty()) return;
  std::vector<figure::GridHead> arranged;
  for (const std::size_t slot : order) arranged.push_back(std::move(heads.at(slot)));
  heads = std::move(arranged);
}

figure::HeadStrip head_strip_of(const HeadId& head, std::span<const AnalysedModel> models,
                                std::vector<float> first, std::vector<float> second,
                                const Prompt& prompt) {
  figure::HeadStrip strip;
  strip.title = head_name(head);
  strip.tokens = prompt.tokens;
  strip.dense_name = models[0].label, strip.sparse_name = models[1].label;
  strip.dense = std::move(first), strip.sparse = std::move(second);
  return strip;
}

figure::CorrelationMap correlation_map_of(std::span<const AnalysedModel> models) {
  const HeadPairs& first = *models[0].pairs;
  figure::CorrelationMap map;
  map.title = "Correlation of attention maps";
  for (const HeadId& head : first.heads) map.names.push_back(head_name(head));
  map.correlations = correlations(first);
  map.name = models[0].label;
  map.order = first.clustering.order;
  map.scale_label = "Pearson correlation";
  map.caption = fmt::format("Heads in the order of a clustering of {}.", models[0].label);
  if (models.size() == 2) {
    map.above = correlations(*models[1].pairs);
    map.above_name = models[1].label;
  }
  return map;
}

figure::ScatterMatrix scatter_matrix_of(std::span<const AnalysedModel> models,
                                        const std::vector<std::size_t>& slots, std::uint64_t seed) {
  figure::ScatterMatrix matrix;
  matrix.title = "Attention weights, head against head";
  for (const AnalysedModel& model : models) {
    const HeadPairs& pairs = *model.pairs;
    figure::ScatterPanel panel{model.label, {}, {}, {}};
    const std::vector<std::size_t> points = pairs.choose_points(kMostPoints, seed);
    const std::vector<float> pearson = correlations(pairs);
    for (const std::size_t a : slots) {
      figure::ScatterHead head{head_name(pairs.heads[a]), {}};
      const std::span<const float> weights = pairs.weights_of(a);
      for (const std::size_t point : points) head.weights.push_back(weights[point]);
      panel.heads.push_back(std::move(head));
      for (const std::size_t b : slots) {
        const std::size_t at = a * pairs.heads.size() + b;
        panel.pearson.push_back(pearson[at]);
        panel.spearman.push_back(static_cast<float>(pairs.spearman[at]));
      }
    }
    matrix.panels.push_back(std::move(panel));
  }
  matrix.caption = "One point a causal (query, key); above the diagonal Pearson and Spearman.";
  return matrix;
}

figure::StatisticsBars statistics_bars_of(std::span<const AnalysedModel> models,
                                          const std::vector<ComparedStatistic>& comparison) {
  figure::StatisticsBars bars;
  bars.title = "Attention statistics";
  for (const AnalysedModel& model : models) bars.models.push_back(model.label);
  for (const ComparedStatistic& row : comparison) {
    if (row.group.scope != HeadGroup::Scope::kModel) continue;
    figure::Statistic statistic;
    statistic.name = heading_of(row.statistic);
    const bool share = is_share(row.statistic);
    const double times = share ? 100 : 1;  // differences of shares are points
    statistic.note = fmt::format("change {:+.2g}", times * row.change);
    if (row.interval)
      statistic.note += fmt::format(" ({:+.2g} to {:+.2g})", times * row.interval->low,
                                    times * row.interval->high);
    if (share) statistic.note += " points";
    statistic.note += fmt::format(", p {} {:.2g}", row.at_least_p() ? "\u2264" : "=", row.p);
    statistic.estimates = {{{row.first, row.first, row.first}},
                           {{row.second, row.second, row.second}}};
    bars.statistics.push_back(std::move(statistic));
  }
  bars.caption =
      "Means over heads and prompts; paired bootstrap intervals and permutation p (\u2264: the "
      "least "
      "that so many prompts can give).";
  return bars;
}

}  // namespace filigree::study

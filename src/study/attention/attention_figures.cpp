#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/attention_study.h"
#include "filigree/evaluation_study.h"

namespace filigree::study {
namespace {

constexpr double kScoreEnd = 10.0;  // scores beyond have the colour of the end
constexpr std::size_t kMostPoints = 20000;
constexpr std::size_t kMostNamedHeads = 48;  // of a correlation map

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

std::vector<HeadId> heads_in_order(const std::string& text, const ModelConfig& config) {
  std::vector<HeadId> order;
  if (text.empty()) return order;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    for (const HeadId& head :
         parse_heads(text.substr(begin, end - begin), config.layers, config.heads))
      if (std::find(order.begin(), order.end(), head) == order.end()) order.push_back(head);
    begin = end + 1;
  }
  return order;
}

std::size_t columns_of_layers(const std::vector<HeadId>& heads, std::int64_t heads_a_layer) {
  if (heads_a_layer <= 0 || heads.size() % static_cast<std::size_t>(heads_a_layer) != 0) return 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % heads_a_layer;
    if (heads[i].head != column ||
        heads[i].layer != heads[i - static_cast<std::size_t>(column)].layer)
      return 0;
  }
  return static_cast<std::size_t>(heads_a_layer);
}

figure::AttentionGrid empty_grid(MapKind kind, const std::vector<std::string>& titles) {
  figure::AttentionGrid grid;
  if (kind == MapKind::kScores) grid.scale = {figure::ScaleKind::kDifference, kScoreEnd};
  grid.scale_label = scale_label(kind);
  for (const std::string& title : titles) grid.panels.push_back({title, {}});
  return grid;
}

void arrange_panel(figure::AttentionGrid& grid, std::size_t panel,
                   const std::vector<HeadRole>& roles, const std::vector<std::size_t>& order) {
  std::vector<figure::GridHead>& heads = grid.panels.at(panel).heads;
  if (!roles.empty()) grid.roles = names_of<Pattern>();
  for (std::size_t slot = 0; !roles.empty() && slot < heads.size(); ++slot)
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
  map.scale_label = "Pearson correlation";
  if (first.heads.size() <= kMostNamedHeads) {
    map.order = first.clustering.order;
    map.caption = fmt::format("Heads in the order of a clustering of {}.", models[0].label);
  } else {
    // Too many to be named one by one: layer by layer, with the layers named.
    for (const HeadId& head : first.heads) {
      const std::string layer = layer_name(head.layer);
      if (map.groups.empty() || map.groups.back().label != layer) map.groups.push_back({layer, 0});
      ++map.groups.back().count;
    }
    map.caption = "Heads layer by layer, within a layer from the first to the last.";
  }
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
  matrix.caption =
      "One point a causal (query, key); above the diagonal Pearson and Spearman. Histograms on the "
      "diagonal and densities of points are logarithmic.";
  return matrix;
}

namespace {

// "+72", with a true minus sign.
std::string two_digits(double value) {
  return fmt::format("{}{:.2g}", value < 0 ? "\u2212" : "+", std::abs(value));
}

// "-72 points [-80, -61], p <= 0.008".
std::string change_text(const ComparedStatistic& row) {
  const bool share = is_share(row.statistic);
  const double times = share ? 100 : 1;  // differences of shares are points
  std::string text = two_digits(times * row.change) + (share ? " points" : "");
  if (row.interval)
    text += fmt::format(" [{}, {}]", two_digits(times * row.interval->low),
                        two_digits(times * row.interval->high));
  // Where it is wrapped, its p stays in one piece.
  return text + fmt::format(", p\u00A0{}\u00A0{:.2g}", row.at_least_p() ? "\u2264" : "=", row.p);
}

}  // namespace

figure::Estimate mean_with_interval(const ComparedStatistic& row, std::size_t model) {
  const double mean = model == 0 ? row.first : row.second;
  const std::optional<Interval>& interval = model == 0 ? row.first_interval : row.second_interval;
  if (!interval) return {mean, mean, mean};
  return {mean, std::min(mean, interval->low), std::max(mean, interval->high)};
}

figure::StatisticsBars statistics_bars_of(std::span<const AnalysedModel> models,
                                          const std::vector<ComparedStatistic>& comparison) {
  figure::StatisticsBars bars;
  bars.title = "Attention statistics";
  for (const AnalysedModel& model : models) bars.models.push_back(model.label);
  for (std::size_t s = 0; s < kStatistics; ++s) {
    figure::Statistic statistic;
    statistic.name = heading_of(static_cast<Statistic>(s));
    statistic.estimates.resize(models.size());
    for (const ComparedStatistic& row : comparison) {
      if (row.group.scope != HeadGroup::Scope::kModel ||
          row.statistic != static_cast<Statistic>(s) ||
          (row.over != Over::kAll && row.over != Over::kLivingHeadsAttendingRows))
        continue;
      if (is_share(row.statistic)) statistic.axis.format = figure::NumberFormat::kPercent;
      statistic.groups.push_back(row.over == Over::kAll ? "all" : "living, attending");
      if (!statistic.note.empty()) statistic.note += "; ";
      statistic.note += change_text(row);
      for (std::size_t m = 0; m < models.size(); ++m)
        statistic.estimates[m].push_back(mean_with_interval(row, m));
    }
    if (!statistic.groups.empty()) bars.statistics.push_back(std::move(statistic));
  }
  std::string living;
  for (const AnalysedModel& model : models)
    living += fmt::format("{}{} in {}", living.empty() ? " Living heads: " : ", ",
                          count_text(model.statistics->living_heads()), model.label);
  bars.caption =
      "Means over prompts: left over all heads and rows, right over the heads that live in both "
      "models and the rows in which they attend. Whiskers: bootstrap intervals of 95 % over the "
      "prompts. Below the names: both changes with paired intervals and permutation p (\u2264: the "
      "least that so many prompts can give)." +
      living + ".";
  return bars;
}

}  // namespace filigree::study

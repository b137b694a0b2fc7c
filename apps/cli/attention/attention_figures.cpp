#include "apps/cli/attention/attention_figures.h"

#include <fmt/format.h>

#include <limits>

#include "apps/cli/attention/attention_report.h"
#include "filigree/figure/attention_grid.h"
#include "filigree/figure/correlation_map.h"
#include "filigree/figure/head_strip.h"
#include "filigree/figure/save.h"
#include "filigree/figure/scatter_matrix.h"
#include "filigree/figure/statistics_bars.h"
#include "filigree/figure/training_curves.h"

namespace filigree::cli {
namespace {

constexpr double kScoreEnd = 10.0;  // scores beyond have the colour of the end

figure::ColorScale scale_of(MapKind kind) {
  if (kind == MapKind::kScores) return {figure::ScaleKind::kDifference, kScoreEnd};
  return {};
}

std::string scale_label(MapKind kind) {
  switch (kind) {
    case MapKind::kScores: return "attention score";
    case MapKind::kGate: return "gate";
    case MapKind::kValueWeighted: return "value-weighted attention";
    default: return "attention weight";
  }
}

void save(const figure::Figure& made, const std::filesystem::path& path, const FigureStyle& style) {
  figure::save(made, path, {.dpi = style.dpi});
}

// The names of the patterns, and where "other" and "unclear" go.
std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < kPatterns; ++p) names.emplace_back(name_of(static_cast<Pattern>(p)));
  return names;
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

struct MapGrid::Maps {
  MapKind kind;
  std::vector<figure::GridPanel> panels;
};

MapGrid::MapGrid(MapKind kind, std::vector<std::string> titles) : maps_(std::make_unique<Maps>()) {
  maps_->kind = kind;
  for (std::string& title : titles) maps_->panels.push_back({std::move(title), {}});
}

MapGrid::~MapGrid() = default;

void MapGrid::add(std::size_t panel, const HeadId& head, std::span<const float> map,
                  std::int64_t length) {
  maps_->panels.at(panel).heads.push_back(
      figure::grid_head(static_cast<int>(head.layer), static_cast<int>(head.head), map,
                        static_cast<std::size_t>(length), scale_of(maps_->kind)));
}

void MapGrid::write(const std::filesystem::path& path, const Text& text, const FigureStyle& style,
                    const std::vector<std::vector<HeadRole>>& roles,
                    const std::vector<std::vector<std::size_t>>& order) const {
  figure::AttentionGrid grid;
  grid.title = text.title;
  grid.prompt = text.prompt;
  grid.metric = text.metric;
  grid.tokens = text.tokens;
  grid.scale = scale_of(maps_->kind);
  grid.scale_label = scale_label(maps_->kind);
  if (!roles.empty()) grid.roles = role_names();
  for (std::size_t m = 0; m < maps_->panels.size(); ++m) {
    figure::GridPanel panel{maps_->panels[m].title, {}};
    const std::size_t count = maps_->panels[m].heads.size();
    for (std::size_t place = 0; place < count; ++place) {
      const std::size_t slot = order.empty() ? place : order[m].at(place);
      figure::GridHead head = maps_->panels[m].heads.at(slot);
      if (!roles.empty())
        for (const Pattern pattern : roles[m].at(slot).patterns)
          head.roles.push_back(static_cast<std::size_t>(pattern));
      panel.heads.push_back(std::move(head));
    }
    grid.panels.push_back(std::move(panel));
  }
  save(figure::attention_grid(grid, figure::theme_named(name_of(style.theme))), path, style);
}

void write_head_strip(const StripInput& input, const std::filesystem::path& path,
                      const FigureStyle& style) {
  figure::HeadStrip strip;
  strip.title = head_name(input.head);
  strip.tokens = input.tokens;
  strip.dense_name = input.first_name, strip.sparse_name = input.second_name;
  strip.dense = input.first, strip.sparse = input.second;
  save(figure::head_strip(strip, figure::theme_named(name_of(style.theme))), path, style);
}

void write_correlation_map(const std::vector<AnalysedModel>& models,
                           const std::filesystem::path& path, const FigureStyle& style) {
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
  save(figure::correlation_map(map, figure::theme_named(name_of(style.theme))), path, style);
}

void write_scatter_matrix(const std::vector<AnalysedModel>& models,
                          const std::vector<std::size_t>& slots, const std::filesystem::path& path,
                          const FigureStyle& style, std::uint64_t seed) {
  constexpr std::size_t kMostPoints = 20000;
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
  save(figure::scatter_matrix(matrix, figure::theme_named(name_of(style.theme))), path, style);
}

void write_statistics_bars(const std::vector<AnalysedModel>& models,
                           const std::vector<ComparedStatistic>& comparison,
                           const std::filesystem::path& path, const FigureStyle& style) {
  figure::StatisticsBars bars;
  bars.title = "Attention statistics";
  for (const AnalysedModel& model : models) bars.models.push_back(model.label);
  for (const ComparedStatistic& row : comparison) {
    if (row.group.scope != HeadGroup::Scope::kModel) continue;
    figure::Statistic statistic;
    statistic.name = heading_of(row.statistic);
    statistic.note = fmt::format("change {:+.2g}", row.change);
    if (row.interval)
      statistic.note += fmt::format(" ({:+.2g} to {:+.2g})", row.interval->low, row.interval->high);
    statistic.note += fmt::format(", p = {:.2g}", row.p);
    statistic.estimates = {{{row.first, row.first, row.first}},
                           {{row.second, row.second, row.second}}};
    bars.statistics.push_back(std::move(statistic));
  }
  bars.caption = "Means over heads and prompts; paired bootstrap intervals and permutation p.";
  save(figure::statistics_bars(bars, figure::theme_named(name_of(style.theme))), path, style);
}

void write_training_curves(const std::vector<CurveInput>& runs, const std::filesystem::path& path,
                           const FigureStyle& style) {
  figure::TrainingCurves curves;
  curves.title = "Sparse post-training";
  for (const CurveInput& run : runs)
    curves.runs.push_back({run.name, run.steps, run.gap, run.active_edges, run.lambda});
  save(figure::training_curves(curves, figure::theme_named(name_of(style.theme))), path, style);
}

}  // namespace filigree::cli

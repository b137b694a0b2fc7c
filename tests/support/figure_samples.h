// Every figure once, over made-up data: for the gallery (examples/figure_gallery) and for the tests
// that compare figures with stored pictures. The data look like what models give, and depend on
// nothing but the numbers here.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "figure/line_chart.h"
#include "filigree/figures.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "support/circuit_samples.h"
#include "support/head_samples.h"
#include "support/trace_samples.h"

namespace filigree::figure::samples {

enum class Pattern {
  kSink,
  kCurrent,
  kPrevious,
  kOffset,
  kDiffuse,
  kStripes,
  kHybrid,
  kFragmented
};
inline constexpr int kPatterns = 8;

inline std::vector<std::string> role_names() {
  return {"sink",   "current",    "previous", "offset",    "diffuse",  "stripes",
          "hybrid", "fragmented", "empty",    "induction", "duplicate"};
}

// Attention weights of a head that does one thing: a softmax over made-up scores.
inline std::vector<float> weights(Pattern pattern, std::size_t tokens, std::uint64_t seed,
                                  double strength = 5) {
  Random random(seed, static_cast<std::uint64_t>(pattern));
  const std::size_t offset = 2 + seed % 4, stripe = 1 + seed % 5;
  std::vector<float> map(tokens * tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    double sum = 0;
    std::vector<double> row(i + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      bool liked = false;
      switch (pattern) {
        case Pattern::kSink: liked = j == 0; break;
        case Pattern::kCurrent: liked = j == i; break;
        case Pattern::kPrevious: liked = j + 1 == i; break;
        case Pattern::kOffset: liked = j + offset == i; break;
        case Pattern::kDiffuse: break;
        case Pattern::kStripes: liked = j % (3 + stripe) == stripe; break;
        case Pattern::kHybrid: liked = j == 0 || j + 1 == i; break;
        case Pattern::kFragmented: liked = (j + offset == i || j + 3 * offset == i) && i % 3 != 0;
      }
      row[j] = std::exp((liked ? strength : 0) + random.normal() * 0.8);
      sum += row[j];
    }
    for (std::size_t j = 0; j <= i; ++j) map[i * tokens + j] = static_cast<float>(row[j] / sum);
  }
  return map;
}

// What a gate leaves of them: most edges are exactly zero.
inline std::vector<float> gated(std::vector<float> map, float threshold = 0.22f) {
  for (float& weight : map)
    if (weight < threshold) weight = 0;
  return map;
}

inline GridHead sample_head(int index, std::size_t tokens, bool sparse) {
  const auto pattern = static_cast<Pattern>(index % kPatterns);
  std::vector<float> map = weights(pattern, tokens, static_cast<std::uint64_t>(index) + 1);
  if (sparse) map = gated(std::move(map));
  GridHead head = grid_head({index / 12, index % 12}, map, static_cast<std::int64_t>(tokens));
  const auto role = static_cast<std::size_t>(pattern);
  const bool empty = std::all_of(map.begin(), map.end(), [](float weight) { return weight == 0; });
  head.roles = empty                         ? std::vector<std::size_t>{8}
               : pattern == Pattern::kHybrid ? std::vector<std::size_t>{0, 2}
                                             : std::vector<std::size_t>{role};
  return head;
}

inline AttentionGrid grid(int dense_heads, int sparse_heads, std::size_t tokens, bool roles) {
  AttentionGrid input = {
      .title = "Heads that explain 90 % of the copy task",
      .panels = {{.title = fmt::format("GPT-2: {} heads", dense_heads)},
                 {.title = fmt::format("Sparse GPT-2: {} heads", sparse_heads)}},
      .prompt = "Prompt: When Mary and John went to the store, John gave a drink to",
      .metric = "Logit difference 3.42 (dense), 3.38 (sparse); active edges 100 %, 0.59 %"};
  if (roles) input.roles = role_names();
  for (int i = 0; i < dense_heads; ++i)
    input.panels[0].heads.push_back(sample_head(i, tokens, false));
  for (int i = 0; i < sparse_heads; ++i)
    input.panels[1].heads.push_back(sample_head(i, tokens, true));
  if (!roles)
    for (GridPanel& panel : input.panels)
      for (GridHead& head : panel.heads) head.roles.clear();
  return input;
}

// Tokens that are hard to draw.
inline std::vector<std::string> difficult_tokens() {
  return {"The",
          " naïve",
          "\n",
          "\t",
          " Привет",
          "你好",
          " שלום",
          "مرحبا",
          "\xF0\x9F",
          "नमस्ते",
          "",
          "\x01",
          " 안녕",
          " supercalifragilisticexpialidocious",
          "\xE2\x80\x8B",
          " ελπίδα"};
}

inline AttentionGrid one_panel_with_tokens() {
  AttentionGrid input = {
      .title = "Two heads, close", .panels = {{.title = "GPT-2"}}, .tokens = tokens_of_a_prompt()};
  for (int index : {2, 5}) input.panels[0].heads.push_back(sample_head(index, 14, false));
  for (GridHead& head : input.panels[0].heads) head.roles.clear();
  return input;
}

inline HeadStrip strip(std::vector<std::string> tokens) {
  const std::size_t count = tokens.size();
  const std::vector<float> dense = weights(Pattern::kHybrid, count, 3, 3.5);
  return {.title = "L5H1",
          .tokens = std::move(tokens),
          .dense_name = "GPT-2",
          .sparse_name = "Sparse GPT-2",
          .dense = dense,
          .sparse = gated(weights(Pattern::kPrevious, count, 4, 4)),
          .caption = "The first-token sink of the dense head is gone; the previous token stays."};
}

inline std::vector<std::string> numbered_tokens(std::size_t count) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(fmt::format("t{}", i));
  return tokens;
}

inline double pearson(const std::vector<float>& a, const std::vector<float>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : std::numeric_limits<double>::quiet_NaN();
}

// The causal cells of a map, in one row.
inline std::vector<float> causal_cells(const std::vector<float>& map, std::size_t tokens) {
  std::vector<float> cells;
  for (std::size_t i = 0; i < tokens; ++i)
    for (std::size_t j = 0; j <= i; ++j) cells.push_back(map[i * tokens + j]);
  return cells;
}

inline ScatterPanel scatter_panel(const std::string& title, int heads, std::size_t tokens,
                                  bool sparse) {
  ScatterPanel panel = {.title = title};
  for (int h = 0; h < heads; ++h) {
    const auto pattern = static_cast<Pattern>((h * 2) % kPatterns);
    std::vector<float> map = weights(pattern, tokens, static_cast<std::uint64_t>(h / 4) + 7, 2.5);
    if (sparse) map = gated(std::move(map), 0.12f);
    panel.heads.push_back({head_name({h, 2 * h + 1}), causal_cells(map, tokens)});
  }
  for (const ScatterHead& a : panel.heads) {
    for (const ScatterHead& b : panel.heads) {
      panel.pearson.push_back(static_cast<float>(pearson(a.weights, b.weights)));
      panel.spearman.push_back(panel.pearson.back() * 0.9f);
    }
  }
  return panel;
}

inline ScatterMatrix scatter(std::size_t tokens) {
  return {.title = "Pairs of heads",
          .panels = {scatter_panel("GPT-2", 5, tokens, false),
                     scatter_panel("Sparse GPT-2", 5, tokens, true)},
          .caption = "One point for each causal pair of positions. r: Pearson, ρ: Spearman."};
}

inline CorrelationMap correlations(std::size_t heads) {
  CorrelationMap input = {.title = "Correlation of heads",
                          .name = "GPT-2",
                          .above_name = "Sparse GPT-2",
                          .caption = "Heads ordered by clustering of the dense model."};
  constexpr std::size_t kTokens = 20;
  std::vector<std::vector<float>> dense, sparse;
  for (std::size_t h = 0; h < heads; ++h) {
    const auto number = static_cast<std::int64_t>(h);
    input.names.push_back(head_name({number / 12, number % 12}));
    const auto pattern = static_cast<Pattern>(h % kPatterns);
    const std::vector<float> map = weights(pattern, kTokens, h, 3);
    dense.push_back(causal_cells(map, kTokens));
    sparse.push_back(causal_cells(gated(map, 0.3f), kTokens));
  }
  for (std::size_t a = 0; a < heads; ++a) {
    for (std::size_t b = 0; b < heads; ++b) {
      input.correlations.push_back(static_cast<float>(pearson(dense[a], dense[b])));
      input.above.push_back(static_cast<float>(pearson(sparse[a], sparse[b])));
    }
    input.order.push_back(a);
  }
  std::stable_sort(input.order.begin(), input.order.end(),
                   [](std::size_t a, std::size_t b) { return a % kPatterns < b % kPatterns; });
  return input;
}

inline StatisticsBars statistics() {
  const auto both = [](Estimate dense, Estimate sparse) {
    return std::vector<std::vector<Estimate>>{{dense}, {sparse}};
  };
  return {.title = "Statistics of attention",
          .models = {"GPT-2", "Sparse GPT-2"},
          .statistics = {{.name = "Peak weight",
                          .note = "+0.17 [0.15, 0.19], p < 0.001",
                          .estimates = both({0.51, 0.49, 0.53}, {0.68, 0.665, 0.70})},
                         {.name = "Row mass",
                          .note = "−0.58 [−0.61, −0.55], p < 0.001",
                          .estimates = both({1, 1, 1}, {0.42, 0.39, 0.45})},
                         {.name = "Entropy (nats)",
                          .note = "−1.85 [−1.92, −1.78], p < 0.001",
                          .estimates = both({2.31, 2.24, 2.38}, {0.46, 0.43, 0.49})},
                         {.name = "Active edges",
                          .note = "÷ 170 [160, 181], p < 0.001",
                          .axis = {.scale = AxisScale::kLog, .format = NumberFormat::kPercent},
                          .estimates = both({1, 1, 1}, {0.0059, 0.0048, 0.0072})},
                         {.name = "Sink mass",
                          .note = "−0.41 [−0.44, −0.38], p < 0.001",
                          .estimates = both({0.43, 0.40, 0.46}, {0.02, 0.01, 0.03})},
                         {.name = "Diagonal dominance",
                          .note = "−7 % [−12 %, −2 %], p = 0.006",
                          .axis = {.format = NumberFormat::kPercent},
                          .estimates = both({0.31, 0.27, 0.35}, {0.24, 0.2, 0.28})},
                         {.name = "Change of sink mass",
                          .note = "negative values",
                          .estimates = both({-0.02, -0.05, 0.01}, {-0.41, -0.44, -0.38})}},
          .caption = "95 % bootstrap intervals over 200 prompts; p-values of a permutation test."};
}

inline StatisticsBars statistics_by_layer() {
  StatisticsBars input = {.title = "Statistics by layer", .models = {"GPT-2", "Sparse GPT-2"}};
  for (const std::string name : {"Peak weight", "Keys per query"}) {
    Statistic statistic = {.name = name, .note = "mean over heads and prompts"};
    statistic.estimates.resize(2);
    const bool keys = name == "Keys per query";
    if (keys) statistic.axis.scale = AxisScale::kLog;
    for (int layer = 0; layer < 12; ++layer) {
      statistic.groups.push_back(fmt::format("{}", layer));
      const double wave = 0.12 * std::sin(layer * 0.9);
      const double dense = keys ? 128 : 0.45 + wave;
      const double sparse = keys ? std::exp(-1 + 2 * wave + layer * 0.1) : 0.7 - wave;
      statistic.estimates[0].push_back(keys ? Estimate{dense, dense, dense}
                                            : Estimate{dense, dense - 0.03, dense + 0.03});
      statistic.estimates[1].push_back({sparse, sparse * 0.85, sparse * 1.15});
    }
    input.statistics.push_back(statistic);
  }
  return input;
}

inline TrainingCurves training() {
  TrainingCurves input = {.title = "Sparse post-training",
                          .margin = 0.01,
                          .caption =
                              "Held-out loss against the dense model; the margin is what the "
                              "multiplier steers towards."};
  for (const bool capped : {false, true}) {
    Random random(11, capped ? 1 : 0);
    TrainingRun run = {.name = capped ? "λ at most 60" : "λ free"};
    double noise = 0;
    for (int step = 0; step <= 3500; step += 10) {
      const double t = step / 3500.0;
      noise = 0.8 * noise + 0.2 * random.normal();
      const double bump = std::exp(-std::pow((t - 0.12) / 0.07, 2));
      run.steps.push_back(step);
      run.loss_gap.push_back(0.01 + (capped ? 0.22 : 0.4) * bump + 0.03 * noise * (1.1 - t));
      run.active_edges.push_back(
          std::min(1.0, std::exp(-(capped ? 5.2 : 4.6) * (1 - std::exp(-4 * t)) +
                                 (capped ? 0 : 2.0 * bump) + 0.03 * noise)));
      run.multiplier.push_back(
          std::min(capped ? 60.0 : 1e9,
                   std::exp(3.4 * (1 - std::exp(-12 * t)) + (capped ? 1 : 3.4) * bump)));
    }
    input.runs.push_back(std::move(run));
  }
  return input;
}

inline LineFigure curves_with_notes() {
  LineFigure input = {.title = "Indirect object identification",
                      .caption =
                          "Heads kept in order of importance; all others take the values of "
                          "the corrupted prompt."};
  input.chart.x_axis = {.label = "heads", .scale = AxisScale::kLog};
  input.chart.y_axis = {
      .label = "explained effect", .format = NumberFormat::kPercent, .low = 0, .high = 1.05};
  for (const bool sparse : {false, true}) {
    Curve curve = {.label = sparse ? "Sparse GPT-2" : "GPT-2"};
    for (int heads = 1; heads <= 144; ++heads) {
      const double share = 1 - std::exp(-heads / (sparse ? 9.0 : 26.0));
      curve.x.push_back(heads);
      curve.y.push_back(share);
      curve.low.push_back(std::max(0.0, share - 0.04));
      curve.high.push_back(std::min(1.0, share + 0.04));
    }
    input.chart.curves.push_back(std::move(curve));
  }
  input.chart.marks = {{0.9, "90 %"}};
  input.chart.points = {{60, 0.9, "60 heads", 0, true},
                        {21, 0.9, "21 heads: 2.9 × fewer", 1, true}};
  return input;
}

struct Sample {
  std::string name;
  std::function<Figure(const Theme&)> make;
  bool stored = true;  // has a reference picture
};

inline std::vector<Sample> all() {
  return {
      {"grid", [](const Theme& theme) { return make_figure(grid(17, 9, 24, true), theme); }},
      {"grid_144", [](const Theme& theme) { return make_figure(grid(144, 144, 256, true), theme); },
       false},
      {"grid_tokens",
       [](const Theme& theme) { return make_figure(one_panel_with_tokens(), theme); }},
      {"head_strip",
       [](const Theme& theme) { return make_figure(strip(tokens_of_a_prompt()), theme); }},
      {"head_strip_scripts",
       [](const Theme& theme) { return make_figure(strip(difficult_tokens()), theme); }},
      {"head_strip_long",
       [](const Theme& theme) { return make_figure(strip(numbered_tokens(200)), theme); }, false},
      {"head_page", [](const Theme& theme) { return make_figure(head_sample(2), theme); }},
      {"head_page_alone", [](const Theme& theme) { return make_figure(head_sample(1), theme); },
       false},
      {"scatter_matrix", [](const Theme& theme) { return make_figure(scatter(40), theme); }},
      {"scatter_matrix_dots",
       [](const Theme& theme) {
         ScatterMatrix input = scatter(20);
         input.panels.resize(1);
         return make_figure(input, theme);
       },
       false},
      {"correlation_map", [](const Theme& theme) { return make_figure(correlations(24), theme); }},
      {"correlation_map_144",
       [](const Theme& theme) { return make_figure(correlations(144), theme); }, false},
      {"statistics_bars", [](const Theme& theme) { return make_figure(statistics(), theme); }},
      {"statistics_layers",
       [](const Theme& theme) { return make_figure(statistics_by_layer(), theme); }},
      {"training_curves", [](const Theme& theme) { return make_figure(training(), theme); }},
      {"circuit_curves", [](const Theme& theme) { return make_figure(effect_curves(1), theme); }},
      {"circuit_curves_two",
       [](const Theme& theme) { return make_figure(effect_curves(2), theme); }},
      {"circuit_curves_three",
       [](const Theme& theme) { return make_figure(effect_curves(3), theme); }},
      {"circuit_graph", [](const Theme& theme) { return make_figure(drawing(), theme); }},
      {"circuit_graph_10", [](const Theme& theme) { return make_figure(one_drawing(10), theme); },
       false},
      {"circuit_graph_200", [](const Theme& theme) { return make_figure(one_drawing(200), theme); },
       false},
      {"token_circuit",
       [](const Theme& theme) { return make_figure(tokens_circuit(400, 30), theme); }},
      {"token_circuit_10000",
       [](const Theme& theme) { return make_figure(tokens_circuit(10000, -1), theme); }, false},
      {"token_arcs", [](const Theme& theme) { return make_figure(arcs(), theme); }},
      {"head_map", [](const Theme& theme) { return make_figure(head_map(), theme); }},
      {"position_map", [](const Theme& theme) { return make_figure(position_map(), theme); }},
      {"lens_map", [](const Theme& theme) { return make_figure(lens_map(), theme); }},
      {"composition_map",
       [](const Theme& theme) { return make_figure(composition_map(4, 6), theme); }},
      {"composition_map_144",
       [](const Theme& theme) { return make_figure(composition_map(12, 12), theme); }, false},
      {"carried_pair", [](const Theme& theme) { return make_figure(carried(), theme); }},
      {"carried_pair_alone", [](const Theme& theme) { return make_figure(carried_alone(), theme); },
       false},
      {"feature_graph",
       [](const Theme& theme) { return make_figure(features_graph(40, 160), theme); }},
      {"feature_graph_150",
       [](const Theme& theme) { return make_figure(features_graph(150, 1500), theme); }, false},
      {"transcoder_quality",
       [](const Theme& theme) { return make_figure(measured_transcoders(2), theme); }},
      {"transcoder_quality_alone",
       [](const Theme& theme) { return make_figure(measured_transcoders(1), theme); }, false},
      {"line_chart", [](const Theme& theme) { return line_figure(curves_with_notes(), theme); }},
  };
}

}  // namespace filigree::figure::samples

// Made-up inputs for the figures of features and of prompts traced through them; figure_samples.h
// lists them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "filigree/figures.h"
#include "filigree/random.h"

namespace filigree::figure::samples {

inline std::vector<std::string> opposite_tokens() {
  return {"<|endoftext|>", "The", " opposite", " of", " \"", "large", "\"", " is", " \""};
}

// Maps of `count` heads, of which the sparse ones attend to little more than the marked cell.
inline CarriedPanel carried_panel(const std::string& title, int count, bool sparse,
                                  std::uint64_t seed) {
  Random random(seed, 3);
  const std::size_t n = opposite_tokens().size();
  CarriedPanel panel = {.title = title, .answer = "small", .note = "97 %"};
  for (int h = 0; h < count; ++h) {
    CarryingMap map = {
        .head = {11 - h * 9 / std::max(1, count), static_cast<std::int64_t>(random.below(12))},
        .weights = std::vector<float>(n * n),
        .share = 0.8 * std::exp(-0.3 * h) * 0.26};
    for (std::size_t q = 0; q < n; ++q)
      for (std::size_t k = 0; k <= q; ++k)
        if (!sparse || random.below(6) == 0 || (q == 8 && k == 5))
          map.weights[q * n + k] = static_cast<float>(sparse ? 0.4 + 0.6 * random.uniform()
                                                             : std::pow(random.uniform(), 3.0));
    panel.maps.push_back(std::move(map));
  }
  panel.modulated_by = {{5, 0, 3, 0.34}, {8, 0, 10, 0.27}, {2, 0, 1, 0.2}};
  if (!sparse)
    panel.modulated_by.insert(panel.modulated_by.end(), {{7, 2, 8, 0.06}, {4, 0, 6, 0.05}});
  return panel;
}

inline CarriedPairFigure carried() {
  return {.title = "From \u201clarge\u201d to the last quote",
          .tokens = opposite_tokens(),
          .key = 5,
          .query = 8,
          .panels = {carried_panel("GPT-2: 43 heads carry 80 %", 43, false, 5),
                     carried_panel("Sparse GPT-2: 5 heads carry 80 %", 5, true, 6)},
          .caption = "Heads by what they carry from key 5 to query 8, until 80 % are reached."};
}

inline CarriedPairFigure carried_alone() {
  CarriedPairFigure input = carried();
  input.panels.erase(input.panels.begin());
  return input;
}

inline FeatureGraphPanel feature_panel(const std::string& title, int features, int edges,
                                       std::uint64_t seed) {
  Random random(seed, 4);
  const std::size_t n = opposite_tokens().size();
  FeatureGraphPanel panel = {.title = title};
  for (std::size_t p = 0; p < n; ++p)
    panel.nodes.push_back({FeatureNodeKind::kEmbedding, 0, p, "emb", 0.2 * random.uniform()});
  for (int f = 0; f < features; ++f)
    panel.nodes.push_back(
        {random.below(8) == 0 ? FeatureNodeKind::kError : FeatureNodeKind::kFeature,
         static_cast<std::size_t>(12 * f / features),
         std::max<std::size_t>(1, n - 1 - random.below(n)),
         random.below(8) == 0 ? "err" : std::to_string(random.below(24576)),
         std::pow(random.uniform(), 3.0)});
  panel.nodes.push_back({FeatureNodeKind::kOutput, 0, n - 1, "small", 1.0});
  for (int e = 0; e < edges; ++e) {
    const std::size_t from = random.below(panel.nodes.size() - 1);
    const std::size_t to = from + 1 + random.below(panel.nodes.size() - from - 1);
    const FeatureNode &a = panel.nodes[from], &b = panel.nodes[to];
    if (b.kind == FeatureNodeKind::kEmbedding || a.position > b.position ||
        (a.kind != FeatureNodeKind::kEmbedding && a.layer == b.layer))
      continue;
    panel.edges.push_back({from, to, std::pow(random.uniform(), 6.0), random.below(5) == 0,
                           a.position == b.position ? ""
                                                    : "L" + std::to_string(b.layer) + "H" +
                                                          std::to_string(random.below(12))});
  }
  return panel;
}

inline FeatureGraphFigure features_graph(int features, int edges) {
  return {.title = "Why \u201csmall\u201d",
          .tokens = opposite_tokens(),
          .layers = 12,
          .panels = {feature_panel("Sparse GPT-2", features, edges, 12)},
          .caption = "Features that have 80 % of the influence on the prediction."};
}

// A dense model's and a sparse one's; with one alone, nothing was measured layer by layer.
inline TranscoderQuality measured_transcoders(int count) {
  TranscoderQuality input = {.title = "How well features stand in for MLPs", .density_steps = 4};
  for (int t = 0; t < count; ++t) {
    MeasuredTranscoder one = {.name = t == 0 ? "GPT-2" : "Sparse GPT-2"};
    for (int layer = 0; layer < 12; ++layer) {
      const double wave = std::sin(0.8 * layer + t);
      one.nmse.push_back(0.16 + 0.012 * layer + 0.03 * wave - 0.03 * t);
      one.active.push_back(16 + 2.5 * wave);
      one.dead.push_back(0.02 + 0.004 * layer * (1 - 0.5 * t));
      one.dense.push_back(0.012 - 0.0008 * layer + 0.005 * t);
      if (count > 1) one.recovered.push_back(0.97 - 0.01 * layer + 0.01 * wave);
    }
    for (int bin = 0; bin < 24; ++bin)
      one.density.push_back(
          bin < 6 ? 0 : std::llround(9000 * std::exp(-0.06 * std::pow(bin - 13 - t, 2))));
    input.captions.push_back(one.name + ": NMSE 0.22, 16 features active a layer, 91 % recovered.");
    input.transcoders.push_back(std::move(one));
  }
  return input;
}

}  // namespace filigree::figure::samples

// What attention analyses found, as the inputs of figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyze/statistics/comparison.h"
#include "study/attention/model_analysis.h"
#include "study/figures.h"

namespace filigree::study {

// How the grid is laid out.
struct GridLayout {
  std::string title = {};
  std::size_t columns = 0;  // 0: a layer a row where whole layers are shown, else what fits
  double width = 0;         // points; 0: that of a page
};

// "L9H1,L3H0": heads in the order given, each once; "" has none. Throws what parse_heads throws.
std::vector<HeadId> heads_in_order(const std::string& text, const ModelConfig& config);

// The number of heads a layer where `heads` are whole layers of them, layer by layer; else 0.
std::size_t columns_of_layers(const std::vector<HeadId>& heads, std::int64_t heads_a_layer);

// The grid of small maps, one panel a model. Maps come one after the other and are kept as levels.
class MapGrid {
 public:
  MapGrid(MapKind kind, const std::vector<std::string>& titles);

  void add(std::size_t panel, const HeadId& head, std::span<const float> map, std::int64_t length);

  // Marks the roles of the maps in the order they were added, none where they are not known, and
  // puts the maps of a panel into `order`: places, the first one first; empty: as they came.
  void arrange(std::size_t panel, const std::vector<HeadRole>& roles,
               const std::vector<std::size_t>& order = {});

  // Title, prompt and metric are the caller's.
  figure::AttentionGrid& figure() { return grid_; }
  const figure::AttentionGrid& figure() const { return grid_; }

 private:
  figure::AttentionGrid grid_;
};

// One head of two models and the difference; maps [T, T].
figure::HeadStrip head_strip_of(const HeadId& head, std::span<const AnalysedModel> models,
                                std::vector<float> first, std::vector<float> second,
                                const Prompt& prompt);

// Correlations of all heads: the first model below the diagonal, the second above.
figure::CorrelationMap correlation_map_of(std::span<const AnalysedModel> models);

// Points of chosen heads (slots), a panel a model.
figure::ScatterMatrix scatter_matrix_of(std::span<const AnalysedModel> models,
                                        const std::vector<std::size_t>& slots, std::uint64_t seed);

// The first (0) or second (1) model's mean over the prompts with its bootstrap interval of 95 %,
// which a single prompt does not have: then both its ends are the mean. Of the model as a whole.
figure::Estimate mean_with_interval(const ComparedStatistic& row, std::size_t model);

// The models' statistics side by side with their changes: over all heads and rows, and over living
// heads and the rows that attend.
figure::StatisticsBars statistics_bars_of(std::span<const AnalysedModel> models,
                                          const std::vector<ComparedStatistic>& comparison);

}  // namespace filigree::study

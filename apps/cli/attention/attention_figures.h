// Figures of attention analyses as files. Without Cairo the program is built with
// figures_left_out.cpp, in which every function says so.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/attention/attention_analysis.h"
#include "filigree/analyze/statistics/comparison.h"
#include "filigree/study/figures.h"

namespace filigree::cli {

// While commands are moved to studies, which have these (study/figures.h).
using study::check_figures;
using study::FigureStyle;
using study::has_figures;
using study::is_figure_file;

// The grid of small maps, one panel a model. Maps come one after the other and are kept as levels.
class MapGrid {
 public:
  MapGrid(MapKind kind, std::vector<std::string> titles);
  ~MapGrid();

  void add(std::size_t panel, const HeadId& head, std::span<const float> map, std::int64_t length);

  struct Text {
    std::string title = {}, prompt = {}, metric = {};
    std::vector<std::string> tokens = {};
  };
  // Roles by model and head, in the order that maps were added; may be empty. `order` is of the
  // maps of a panel: places, the first one first; empty: as they came.
  void write(const std::filesystem::path& path, const Text& text, const FigureStyle& style,
             const std::vector<std::vector<HeadRole>>& roles = {},
             const std::vector<std::vector<std::size_t>>& order = {}) const;

 private:
  struct Maps;
  std::unique_ptr<Maps> maps_;
};

// One head of two models and the difference.
struct StripInput {
  HeadId head = {};
  std::string first_name = {}, second_name = {};
  std::vector<float> first = {}, second = {};  // [T, T]
  std::vector<std::string> tokens = {};
};
void write_head_strip(const StripInput& input, const std::filesystem::path& path,
                      const FigureStyle& style);

// Correlations of all heads: the first model below the diagonal, the second above.
void write_correlation_map(const std::vector<AnalysedModel>& models,
                           const std::filesystem::path& path, const FigureStyle& style);

// Points of chosen heads (slots), a panel a model.
void write_scatter_matrix(const std::vector<AnalysedModel>& models,
                          const std::vector<std::size_t>& slots, const std::filesystem::path& path,
                          const FigureStyle& style, std::uint64_t seed);

// The model's statistics side by side, with the changes.
void write_statistics_bars(const std::vector<AnalysedModel>& models,
                           const std::vector<ComparedStatistic>& comparison,
                           const std::filesystem::path& path, const FigureStyle& style);

// Loss gap, active edges and multiplier of training runs, from their logs.
struct CurveInput {
  std::string name = {};
  std::vector<double> steps = {}, gap = {}, active_edges = {}, lambda = {};
};
void write_training_curves(const std::vector<CurveInput>& runs, const std::filesystem::path& path,
                           const FigureStyle& style);

}  // namespace filigree::cli

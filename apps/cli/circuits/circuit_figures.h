// Figures of circuits and lenses as files, from the plain inputs of src/figure. Without Cairo the
// program is built with figures_left_out.cpp, in which every function says so.
#pragma once

#include <filesystem>
#include <string>

#include "apps/cli/attention/attention_figures.h"
#include "filigree/figure/attention_grid.h"
#include "filigree/figure/circuit_curves.h"
#include "filigree/figure/circuit_graph.h"
#include "filigree/figure/labelled_map.h"

namespace filigree::cli {

// The ending of the path chooses the format.
void write_labelled_maps(const figure::LabelledMaps& input, const std::filesystem::path& path,
                         const FigureStyle& style);
void write_circuit_curves(const figure::CircuitCurves& input, const std::filesystem::path& path,
                          const FigureStyle& style);
void write_circuit_graph(const figure::CircuitDrawing& input, const std::filesystem::path& path,
                         const FigureStyle& style);
void write_attention_grid(const figure::AttentionGrid& input, const std::filesystem::path& path,
                          const FigureStyle& style);

// The same as SVG text, for pages that hold their pictures.
std::string circuit_curves_svg(const figure::CircuitCurves& input, const FigureStyle& style);
std::string circuit_graph_svg(const figure::CircuitDrawing& input, const FigureStyle& style);
std::string attention_grid_svg(const figure::AttentionGrid& input, const FigureStyle& style);

// A head's map for a panel of the grid.
figure::GridHead map_of_head(const HeadId& head, std::span<const float> weights,
                             std::int64_t length);

// Adds --figure FILE; commands call check_figure_file() before they start to work.
void add_figure_file(CLI::App& app, std::string& file, FigureStyle& style);
// Throws Error for an ending that is none of a figure, an unknown theme, or a program without
// figures. "" is no figure, and fine.
void check_figure_file(const std::string& file, const FigureStyle& style);

}  // namespace filigree::cli

#include "apps/cli/circuits/circuit_figures.h"

#include "filigree/figure/save.h"

namespace filigree::cli {
namespace {

const figure::Theme& theme_of(const FigureStyle& style) { return figure::theme_named(style.theme); }

void save(const figure::Figure& made, const std::filesystem::path& path, const FigureStyle& style) {
  figure::save(made, path, {.dpi = style.dpi});
}

}  // namespace

void write_labelled_maps(const figure::LabelledMaps& input, const std::filesystem::path& path,
                         const FigureStyle& style) {
  save(figure::labelled_maps(input, theme_of(style)), path, style);
}

void write_circuit_curves(const figure::CircuitCurves& input, const std::filesystem::path& path,
                          const FigureStyle& style) {
  save(figure::circuit_curves(input, theme_of(style)), path, style);
}

void write_circuit_graph(const figure::CircuitDrawing& input, const std::filesystem::path& path,
                         const FigureStyle& style) {
  save(figure::circuit_graph(input, theme_of(style)), path, style);
}

void write_attention_grid(const figure::AttentionGrid& input, const std::filesystem::path& path,
                          const FigureStyle& style) {
  save(figure::attention_grid(input, theme_of(style)), path, style);
}

std::string circuit_curves_svg(const figure::CircuitCurves& input, const FigureStyle& style) {
  return figure::render(figure::circuit_curves(input, theme_of(style)), figure::Format::kSvg);
}

std::string circuit_graph_svg(const figure::CircuitDrawing& input, const FigureStyle& style) {
  return figure::render(figure::circuit_graph(input, theme_of(style)), figure::Format::kSvg);
}

std::string attention_grid_svg(const figure::AttentionGrid& input, const FigureStyle& style) {
  return figure::render(figure::attention_grid(input, theme_of(style)), figure::Format::kSvg);
}

figure::GridHead map_of_head(const HeadId& head, std::span<const float> weights,
                             std::int64_t length) {
  return figure::grid_head(static_cast<int>(head.layer), static_cast<int>(head.head), weights,
                           static_cast<std::size_t>(length));
}

}  // namespace filigree::cli

#include "filigree/study_figures.h"

namespace filigree::study {
namespace {

struct Draw {
  const figure::Theme& theme;

  figure::Figure operator()(const figure::AttentionGrid* input) const {
    return attention_grid(*input, theme);
  }
  figure::Figure operator()(const figure::CarriedPairFigure* input) const {
    return carried_pair(*input, theme);
  }
  figure::Figure operator()(const figure::CircuitCurves* input) const {
    return circuit_curves(*input, theme);
  }
  figure::Figure operator()(const figure::CircuitDrawing* input) const {
    return circuit_graph(*input, theme);
  }
  figure::Figure operator()(const figure::CorrelationMap* input) const {
    return correlation_map(*input, theme);
  }
  figure::Figure operator()(const figure::FeatureGraphFigure* input) const {
    return feature_graph(*input, theme);
  }
  figure::Figure operator()(const figure::HeadPage* input) const {
    return head_page(*input, theme);
  }
  figure::Figure operator()(const figure::HeadStrip* input) const {
    return head_strip(*input, theme);
  }
  figure::Figure operator()(const figure::LabelledMaps* input) const {
    return labelled_maps(*input, theme);
  }
  figure::Figure operator()(const figure::ScatterMatrix* input) const {
    return scatter_matrix(*input, theme);
  }
  figure::Figure operator()(const figure::StatisticsBars* input) const {
    return statistics_bars(*input, theme);
  }
  figure::Figure operator()(const figure::TokenArcs* input) const {
    return token_arcs(*input, theme);
  }
  figure::Figure operator()(const figure::TokenCircuit* input) const {
    return token_circuit(*input, theme);
  }
  figure::Figure operator()(const figure::TrainingCurves* input) const {
    return training_curves(*input, theme);
  }
  figure::Figure operator()(const figure::TranscoderQuality* input) const {
    return transcoder_quality(*input, theme);
  }
};

figure::Figure drawn(const FigureInput& input, const FigureStyle& style) {
  return std::visit(Draw{figure::theme_named(name_of(style.theme))}, input);
}

}  // namespace

bool has_figures() { return true; }
void check_figures() {}

void save_figure(const FigureInput& input, const std::filesystem::path& path,
                 const FigureStyle& style) {
  figure::save(drawn(input, style), path, {.dpi = style.dpi});
}

std::string figure_svg(const FigureInput& input, const FigureStyle& style) {
  return figure::render(drawn(input, style), figure::Format::kSvg);
}

figure::GridHead grid_head(const HeadId& head, std::span<const float> values, std::int64_t length,
                           const figure::ColorScale& scale) {
  return figure::grid_head(static_cast<int>(head.layer), static_cast<int>(head.head), values,
                           static_cast<std::size_t>(length), scale);
}

}  // namespace filigree::study

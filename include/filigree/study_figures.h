// Figures of studies: how they look, and the way from the plain inputs of src/figure to a file or
// to SVG text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "filigree/figures.h"
#include "filigree/knobs.h"
#include "filigree/maps.h"
#include "filigree/names.h"

namespace filigree::study {

enum class FigureTheme { kLight, kDark, kPrint };

struct FigureStyle {
  FigureTheme theme = FigureTheme::kLight;
  double dpi = 200;  // of PNG files
};

Knobs knobs_of(FigureStyle& style);

// Whether the ending is one of a figure (.svg, .pdf, .png).
bool is_figure_file(const std::filesystem::path& path);
// Before the work: throws RequestError for an ending that is none of a figure. An empty path is no
// figure, and fine.
void check_figure_file(const std::filesystem::path& path);

// What a figure is made of; never null.
using FigureInput = std::variant<
    const figure::AttentionGrid*, const figure::CarriedPairFigure*, const figure::CircuitCurves*,
    const figure::CircuitDrawing*, const figure::CorrelationMap*, const figure::FeatureGraphFigure*,
    const figure::HeadPage*, const figure::HeadStrip*, const figure::LabelledMaps*,
    const figure::ScatterMatrix*, const figure::StatisticsBars*, const figure::TokenArcs*,
    const figure::TokenCircuit*, const figure::TrainingCurves*, const figure::TranscoderQuality*>;

// The ending of the path chooses the format.
void save_figure(const FigureInput& input, const std::filesystem::path& path,
                 const FigureStyle& style);
// For pages that hold their pictures.
std::string figure_svg(const FigureInput& input, const FigureStyle& style);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::FigureTheme> =
    std::to_array<Named<study::FigureTheme>>({{study::FigureTheme::kLight, "light"},
                                              {study::FigureTheme::kDark, "dark"},
                                              {study::FigureTheme::kPrint, "print"}});

}  // namespace filigree

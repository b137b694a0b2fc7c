#include "filigree/study_figures.h"

#include <fmt/format.h>

#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {
namespace {

figure::Figure drawn(const FigureInput& input, const FigureStyle& style) {
  const figure::Theme& theme = figure::theme_named(name_of(style.theme));
  return std::visit([&](const auto* plain) { return figure::make_figure(*plain, theme); }, input);
}

}  // namespace

bool is_figure_file(const std::filesystem::path& path) {
  return figure::find_format(path).has_value();
}

void check_figure_file(const std::filesystem::path& path) {
  if (path.empty()) return;
  if (!is_figure_file(path))
    throw RequestError(fmt::format("'{}': the ending of a figure must be .svg, .pdf or .png",
                                   printable(path.string())));
}

Knobs knobs_of(FigureStyle& style) {
  Knobs knobs;
  knobs.section("Figures");
  knobs.choice({.name = "theme", .what = "colours of figures", .level = KnobLevel::kBasic},
               style.theme);
  knobs.number({.name = "dpi", .what = "resolution of PNG files"}, style.dpi,
               {.min = 20.0, .max = 2400.0});
  return knobs;
}

void save_figure(const FigureInput& input, const std::filesystem::path& path,
                 const FigureStyle& style) {
  figure::save(drawn(input, style), path, {.dpi = style.dpi});
}

std::string figure_svg(const FigureInput& input, const FigureStyle& style) {
  return figure::render(drawn(input, style), figure::Format::kSvg);
}

}  // namespace filigree::study

#include "filigree/study_figures.h"

#include <fmt/format.h>

#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {

bool is_figure_file(const std::filesystem::path& path) {
  return figure::find_format(path).has_value();
}

void check_figure_file(const std::filesystem::path& path) {
  if (path.empty()) return;
  check_figures();
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

}  // namespace filigree::study

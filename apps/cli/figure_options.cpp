#include <CLI/CLI.hpp>

#include "apps/cli/attention_figures.h"
#include "apps/cli/program.h"

namespace filigree::cli {

void add_figure_options(CLI::App& app, FigureStyle& style) {
  app.add_option("--theme", style.theme, "of figures: light, dark or print")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--dpi", style.dpi, "resolution of PNG files")
      ->check(number(20.0, 2400.0))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace filigree::cli

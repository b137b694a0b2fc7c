#include "apps/cli/program/figure_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/choices.h"

namespace filigree::cli {

void add_figure_options(CLI::App& app, study::FigureStyle& style) {
  add_choice(app, "--theme", style.theme, "colours of figures");
  app.add_option("--dpi", style.dpi, "resolution of PNG files")
      ->check(number(20.0, 2400.0))
      ->type_name("N")
      ->capture_default_str();
}

void add_grid_options(CLI::App& app, std::size_t& columns, double& width) {
  app.add_option("--columns", columns,
                 "maps in a row of the grid (default a layer a row where whole layers are shown, "
                 "else what fits)")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_option("--width", width, "width of the grid in points (default 516, that of a page)")
      ->check(whole_number(250, 4000))
      ->type_name("N");
}

void add_figure_formats(CLI::App& app, std::vector<figure::Format>& formats) {
  add_choices(app, "--format", formats, "of figures");
}

void add_figure_file(CLI::App& app, std::string& file, study::FigureStyle& style) {
  app.add_option("--out", file, "file of the figure: .svg, .pdf or .png")
      ->check(figure_file())
      ->type_name("FILE");
  add_figure_options(app, style);
}

study::Json out_json(const std::string& file) {
  return file.empty() ? study::Json() : study::Json(file);
}

}  // namespace filigree::cli

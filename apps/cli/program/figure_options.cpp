#include <CLI/CLI.hpp>

#include "apps/cli/attention/attention_figures.h"
#include "apps/cli/circuits/circuit_figures.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

void add_figure_options(CLI::App& app, FigureStyle& style) {
  add_choice(app, "--theme", style.theme, {"light", "dark", "print"}, "colours of figures");
  app.add_option("--dpi", style.dpi, "resolution of PNG files")
      ->check(number(20.0, 2400.0))
      ->type_name("N")
      ->capture_default_str();
}

void add_figure_formats(CLI::App& app, std::vector<std::string>& formats) {
  add_choices(app, "--format", formats, {"svg", "pdf", "png"}, "of figures");
}

void add_figure_file(CLI::App& app, std::string& file, FigureStyle& style) {
  app.add_option("--figure", file, "draw it: .svg, .pdf or .png")->type_name("FILE");
  add_figure_options(app, style);
}

void check_figure_file(const std::string& file, const FigureStyle& style) {
  if (file.empty()) return;
  check_figures(style);
  require(is_figure_file(file), "--figure '{}': the ending must be .svg, .pdf or .png",
          printable(file));
}

}  // namespace filigree::cli

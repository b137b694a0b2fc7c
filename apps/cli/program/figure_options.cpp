#include "apps/cli/program/figure_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/choices.h"
#include "apps/cli/program/values.h"

namespace filigree::cli {

void add_figure_formats(CLI::App& app, std::vector<figure::Format>& formats) {
  add_choices(app, "--format", formats, "of figures");
}

void add_figure_file(CLI::App& app, std::string& file) {
  app.add_option("--out", file, "file of the figure: .svg, .pdf or .png")
      ->check(figure_file())
      ->type_name("FILE");
}

study::Json out_json(const std::string& file) {
  return file.empty() ? study::Json() : study::Json(file);
}

}  // namespace filigree::cli

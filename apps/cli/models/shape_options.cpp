#include "apps/cli/models/shape_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/values.h"

namespace filigree::cli {

CLI::Option* add_shape_option(CLI::App& app, const char* name, std::int64_t& value,
                              const char* what, std::int64_t most) {
  return app.add_option(name, value, what)
      ->check(whole_number(1, most))
      ->type_name("N")
      ->capture_default_str()
      ->group("Model");
}

void add_size_options(CLI::App& app, study::ModelShape& shape) {
  add_shape_option(app, "--layers", shape.layers, "layers", 1000);
  add_shape_option(app, "--layer-heads", shape.heads, "attention heads a layer", 1000);
  add_shape_option(app, "--width", shape.width, "width of the residual stream", 1 << 16);
}

void add_shape_options(CLI::App& app, study::ModelShape& shape) {
  add_size_options(app, shape);
  add_shape_option(app, "--vocab", shape.vocabulary, "tokens of the vocabulary", 1 << 22);
}

}  // namespace filigree::cli

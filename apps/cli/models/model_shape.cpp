#include "apps/cli/models/model_shape.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/cli/program/program.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/model/model.h"

namespace filigree::cli {

ModelConfig ModelShape::config() const {
  require(width % heads == 0, "--width {} is not a multiple of --heads {}", width, heads);
  const nlohmann::json json = {{"architectures", {"GPT2LMHeadModel"}},
                               {"model_type", "gpt2"},
                               {"n_layer", layers},
                               {"n_head", heads},
                               {"n_embd", width},
                               {"n_positions", context},
                               {"vocab_size", vocabulary},
                               {"activation_function", "gelu_new"},
                               {"layer_norm_epsilon", 1e-5}};
  return parse_model_config(json, "the model's shape");
}

std::string ModelShape::text() const {
  return fmt::format("GPT-2 with {} layers, {} heads, width {}, {} tokens", layers, heads, width,
                     with_thousands(static_cast<std::uint64_t>(vocabulary)));
}

CLI::Option* add_shape_option(CLI::App& app, const char* name, std::int64_t& value,
                              const char* what, std::int64_t most) {
  return app.add_option(name, value, what)
      ->check(whole_number(1, most))
      ->type_name("N")
      ->capture_default_str()
      ->group("Model");
}

void add_size_options(CLI::App& app, ModelShape& shape) {
  add_shape_option(app, "--layers", shape.layers, "layers", 1000);
  add_shape_option(app, "--heads", shape.heads, "attention heads a layer", 1000);
  add_shape_option(app, "--width", shape.width, "width of the residual stream", 1 << 16);
}

void add_shape_options(CLI::App& app, ModelShape& shape) {
  add_size_options(app, shape);
  add_shape_option(app, "--vocab", shape.vocabulary, "tokens of the vocabulary", 1 << 22);
}

}  // namespace filigree::cli

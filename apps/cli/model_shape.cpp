#include "apps/cli/model_shape.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/cli/program.h"
#include "base/error.h"
#include "base/strings.h"
#include "model/model.h"

namespace filigree::cli {

ModelConfig ModelShape::config() const {
  require(width % heads == 0, "--width {} is not a multiple of --heads {}", width, heads);
  const nlohmann::json json = {{"architectures", {"GPT2LMHeadModel"}},
                               {"model_type", "gpt2"},
                               {"n_layer", layers},
                               {"n_head", heads},
                               {"n_embd", width},
                               {"n_positions", kContext},
                               {"vocab_size", vocabulary},
                               {"activation_function", "gelu_new"},
                               {"layer_norm_epsilon", 1e-5}};
  return parse_model_config(json, "the model's shape");
}

std::string ModelShape::text() const {
  return fmt::format("GPT-2 with {} layers, {} heads, width {}, {} tokens", layers, heads, width,
                     with_thousands(static_cast<std::uint64_t>(vocabulary)));
}

void add_shape_options(CLI::App& app, ModelShape& shape) {
  const auto add = [&](const char* name, std::int64_t& value, const char* what, std::int64_t most) {
    app.add_option(name, value, what)
        ->check(whole_number(1, most))
        ->type_name("N")
        ->capture_default_str()
        ->group("Model");
  };
  add("--layers", shape.layers, "layers", 1000);
  add("--heads", shape.heads, "attention heads a layer", 1000);
  add("--width", shape.width, "width of the residual stream", 1 << 16);
  add("--vocab", shape.vocabulary, "tokens of the vocabulary", 1 << 22);
}

}  // namespace filigree::cli

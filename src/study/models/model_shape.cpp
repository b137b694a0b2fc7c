#include "filigree/study/models/model_shape.h"

#include <fmt/format.h>

#include "filigree/base/strings.h"
#include "filigree/model/model.h"
#include "filigree/study/context.h"

namespace filigree::study {

ModelConfig ModelShape::config() const {
  if (width % heads != 0)
    throw RequestError(fmt::format("a width of {} is not a multiple of {} heads", width, heads));
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

}  // namespace filigree::study

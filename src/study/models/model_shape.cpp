#include <fmt/format.h>

#include <filesystem>

#include "base/file_status.h"
#include "filigree/model.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "json/json.h"

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

ModelConfig named_config(const std::string& name) {
  if (name == "gpt2" && !is_folder(name) && !find_named_model(name)) return ModelShape().config();
  if (name.ends_with(".json")) return parse_model_config(read_json(name), name);
  return read_model_config(model_folder(name));
}

}  // namespace filigree::study

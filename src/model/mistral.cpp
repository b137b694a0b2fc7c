#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config = read_llama_config(json, "mistral", {.key_heads = 8});
  // Absent it has transformers' default, null says that there is none.
  const bool absent = !json.raw().contains("sliding_window");
  const std::int64_t window = absent ? 4096 : json.integer_or("sliding_window", 0, 1, kMostExtent);
  config.windows =
      read_windows(json, config.layers, window, [&](std::int64_t) { return window > 0; });
  return config;
}

LlamaLayout layout(const ModelConfig&) { return {}; }

}  // namespace

const Family kMistralFamily = llama_family<layout>("mistral", read_config);

}  // namespace filigree

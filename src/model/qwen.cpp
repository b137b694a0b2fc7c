// Qwen 2 (biases on q, k and v) and Qwen 3 (norms on q and k).
#include "model/llama_layout.h"

namespace filigree {
namespace {

// The layers from max_window_layers on slide, where use_sliding_window says so.
std::vector<std::int64_t> windows(const JsonObject& json, std::int64_t layers) {
  // Absent it has transformers' default, null says that there is none.
  const bool none = json.raw().contains("sliding_window") && !json.has("sliding_window");
  const std::int64_t given = none ? 0 : json.integer_or("sliding_window", 4096, 1, kMostExtent);
  const std::int64_t window = json.boolean_or("use_sliding_window", false) ? given : 0;
  const std::int64_t first = json.integer_or("max_window_layers", 28, 0, kMostExtent);
  return read_windows(json, layers, window,
                      [&](std::int64_t layer) { return window > 0 && layer >= first; });
}

ModelConfig read_qwen2(const JsonObject& json) {
  ModelConfig config = read_llama_config(json, "qwen2", {.key_heads = 32});
  config.windows = windows(json, config.layers);
  return config;
}

ModelConfig read_qwen3(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // qwen3_layout() reads it, without an Error
  ModelConfig config = read_llama_config(json, "qwen3", {.key_heads = 32, .head_width = 128});
  config.query_key_norm = QueryKeyNorm::kHead;
  config.windows = windows(json, config.layers);
  return config;
}

LlamaLayout qwen2_layout(const ModelConfig&) { return {.qkv_bias = true}; }

LlamaLayout qwen3_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias};
}

}  // namespace

const Family kQwen2Family = llama_family<qwen2_layout>("qwen2", read_qwen2);
const Family kQwen3Family = llama_family<qwen3_layout>("qwen3", read_qwen3);

}  // namespace filigree

// Qwen 2 (biases on q, k and v), Qwen 3 (norms on q and k) and its mixtures of experts.
#include "filigree/error.h"
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

ModelConfig read_qwen3_moe(const JsonObject& json) {
  json.boolean_or("attention_bias", false);
  const std::int64_t step = json.integer_or("decoder_sparse_step", 1);
  require(step == 1, "{}: decoder_sparse_step {} is not supported; 1, experts in every layer, is",
          json.source(), step);
  require(!json.has("mlp_only_layers") || json.array("mlp_only_layers").empty(),
          "{}: mlp_only_layers is not supported; experts in every layer are", json.source());
  ModelConfig config = read_llama_config(json, "qwen3_moe", {.key_heads = 4});
  config.query_key_norm = QueryKeyNorm::kHead;
  read_experts(json, "moe_intermediate_size", {.experts = 128, .per_token = 8}, config);
  // Absent it has transformers' default, null says that there is none.
  const bool none = json.raw().contains("sliding_window") && !json.has("sliding_window");
  if (none || !json.boolean_or("use_sliding_window", false)) return config;
  config.windows.assign(static_cast<std::size_t>(config.layers),
                        json.integer_or("sliding_window", 4096, 1, kMostExtent));
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
const Family kQwen3MoeFamily = llama_family<qwen3_layout>("qwen3_moe", read_qwen3_moe);

}  // namespace filigree

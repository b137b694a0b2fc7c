#include <cmath>

#include "model/llama_layout.h"

namespace filigree {
namespace {

// Absent it has transformers' default, null says that there is none.
float cap_of(const JsonObject& json, const char* key, double fallback) {
  if (json.raw().contains(key) && !json.has(key)) return 0.0f;
  return static_cast<float>(json.number_or(key, fallback, 1e-3, 1e6));
}

ModelConfig read_config(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // layout() reads it, without an Error
  ModelConfig config = read_llama_config(json, "gemma2",
                                         {.key_heads = 4,
                                          .head_width = 256,
                                          .tied_embeddings = true,
                                          .activation_key = "hidden_activation",
                                          .activation = "gelu_pytorch_tanh"});
  config.norm_around_one = true;
  config.branch_norms = BranchNorms::kBoth;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  config.attention_scale =
      1.0 / std::sqrt(json.number_or("query_pre_attn_scalar", 256.0, 1e-3, 1e9));
  config.score_soft_cap = cap_of(json, "attn_logit_softcapping", 50.0);
  config.logit_soft_cap = cap_of(json, "final_logit_softcapping", 30.0);
  const std::int64_t window = json.integer_or("sliding_window", 4096, 1, kMostExtent);
  config.windows =
      read_windows(json, config.layers, window, [](std::int64_t layer) { return layer % 2 == 0; });
  return config;
}

LlamaLayout layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias};
}

}  // namespace

const Family kGemma2Family = llama_family<layout>("gemma2", read_config);

}  // namespace filigree

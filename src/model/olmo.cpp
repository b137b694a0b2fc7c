// OLMo (norms without weights, clipped q, k and v) and OLMo 2 (norms behind the branches and on q
// and k).
#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_olmo(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // the layouts read it, without an Error
  ModelConfig config = read_llama_config(json, "olmo");
  config.norm = NormKind::kLayer;
  config.norm_epsilon = 1e-5;  // config.json has no say in it
  config.clip_qkv = static_cast<float>(json.number_or("clip_qkv", 0.0, 0.0, 1e6));
  return config;
}

ModelConfig read_olmo2(const JsonObject& json) {
  json.boolean_or("attention_bias", false);
  ModelConfig config = read_llama_config(json, "olmo2", {.norm_epsilon = 1e-5});
  config.branch_norms = BranchNorms::kAfter;
  config.query_key_norm = QueryKeyNorm::kAllHeads;
  return config;
}

LlamaLayout olmo_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias, .norm_weights = false};
}

LlamaLayout olmo2_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias};
}

}  // namespace

const Family kOlmoFamily = llama_family<olmo_layout>("olmo", read_olmo);
const Family kOlmo2Family = llama_family<olmo2_layout>("olmo2", read_olmo2);

}  // namespace filigree

// OLMo (norms without weights, clipped q, k and v), OLMo 2 (norms behind the branches and on q and
// k), OLMo 3 (with windows, whose layers do not share the scaling of the others) and OLMoE
// (experts; norms before the branches and on q and k).
#include "filigree/error.h"
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

ModelConfig read_olmo3(const JsonObject& json) {
  json.boolean_or("attention_bias", false);
  ModelConfig config = read_llama_config(
      json, "olmo3", {.norm_epsilon = 1e-5, .rotary = {.default_base = 5e5, .by_layer = true}});
  config.branch_norms = BranchNorms::kAfter;
  config.query_key_norm = QueryKeyNorm::kAllHeads;
  const std::int64_t window = json.integer_or("sliding_window", 4096, 1, kMostExtent);
  config.windows = read_windows(json, config.layers, window,
                                [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
  return config;
}

ModelConfig read_olmoe(const JsonObject& json) {
  json.boolean_or("attention_bias", false);
  require(!json.has("clip_qkv"),
          "{}: clip_qkv {} is not supported in this family, which clips behind its norms; null is",
          json.source(), json.number_or("clip_qkv", 0.0));
  ModelConfig config = read_llama_config(json, "olmoe", {.norm_epsilon = 1e-5});
  config.query_key_norm = QueryKeyNorm::kAllHeads;
  read_experts(json, "intermediate_size", {.experts = 64, .per_token = 8}, config);
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
const Family kOlmoeFamily = llama_family<olmo2_layout>("olmoe", read_olmoe);
const Family kOlmo3Family = llama_family<olmo2_layout>("olmo3", read_olmo3);

}  // namespace filigree

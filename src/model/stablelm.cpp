// StableLM: Llama with layer norms, heads that are turned in part, and in some models attention and
// MLP beside each other behind one norm, and norms on the q and k of each head.
#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_stablelm(const JsonObject& json) {
  json.boolean_or("use_qkv_bias", false);  // stablelm_layout() reads it, without an Error
  ModelConfig config =
      read_llama_config(json, "stablelm",
                        {.key_heads = 32,
                         .norm_epsilon = 1e-5,
                         .epsilon_key = "layer_norm_eps",
                         .rotary = {.share = "partial_rotary_factor", .default_share = 0.25}});
  config.norm = NormKind::kLayer;
  if (json.boolean_or("qk_layernorm", false)) config.query_key_norm = QueryKeyNorm::kEachHead;
  if (json.boolean_or("use_parallel_residual", false)) config.residual = ResidualKind::kParallel;
  return config;
}

LlamaLayout stablelm_layout(const ModelConfig& config) {
  return {.qkv_bias = flag_of(config, "use_qkv_bias", false),
          .norm_bias = true,
          .one_norm = flag_of(config, "use_parallel_residual", false),
          .norms_by_head = true};
}

}  // namespace

const Family kStableLmFamily = llama_family<stablelm_layout>("stablelm", read_stablelm);

}  // namespace filigree

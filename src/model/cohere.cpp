// Cohere's Command R: attention and MLP beside each other behind one norm, layer norms without
// biases, also on queries and keys, pairs that stand beside each other in files, scaled logits.
#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_cohere(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // cohere_layout() reads it, without an Error
  ModelConfig config = read_llama_config(json, "cohere",
                                         {.norm_epsilon = 1e-5,
                                          .epsilon_key = "layer_norm_eps",
                                          .tied_embeddings = true,
                                          .rotary = {.default_base = 5e5}});
  config.norm = NormKind::kLayer;
  config.residual = ResidualKind::kParallel;
  config.logit_scale = json.number_or("logit_scale", 0.0625, 1e-6, 1e6);
  if (json.boolean_or("use_qk_norm", false)) config.query_key_norm = QueryKeyNorm::kEachHead;
  return config;
}

LlamaLayout cohere_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias, .one_norm = true, .paired = true};
}

}  // namespace

const Family kCohereFamily = llama_family<cohere_layout>("cohere", read_cohere);

}  // namespace filigree

// StarCoder 2: Llama's attention with a window and biases, layer norms, and a plain MLP.
#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_starcoder2(const JsonObject& json) {
  json.boolean_or("use_bias", true);  // starcoder2_layout() reads it, without an Error
  ModelConfig config = read_llama_config(json, "starcoder2",
                                         {.key_heads = 2,
                                          .norm_epsilon = 1e-5,
                                          .epsilon_key = "norm_epsilon",
                                          .tied_embeddings = true,
                                          .activation = "gelu_pytorch_tanh"});
  config.norm = NormKind::kLayer;
  config.mlp = MlpKind::kPlain;
  const std::int64_t window = json.integer_or("sliding_window", 0, 1, kMostExtent);
  for (std::int64_t l = 0; l < config.layers && window > 0; ++l) config.windows.push_back(window);
  return config;
}

LlamaLayout starcoder2_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "use_bias", true);
  return {.qkv_bias = bias, .output_bias = bias, .mlp_bias = bias, .norm_bias = true};
}

}  // namespace

const Family kStarcoder2Family = llama_family<starcoder2_layout>("starcoder2", read_starcoder2);

}  // namespace filigree

// GPT-BigCode (SantaCoder, StarCoder): GPT-2 whose heads share one of keys and values, or have
// their own as GPT-NeoX stores them.
#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

ModelConfig read_bigcode(const JsonObject& json) {
  ModelConfig config;
  config.family = "gpt_bigcode";
  read_gpt2_extents(json, config);
  if (json.boolean_or("multi_query", true)) config.key_heads = 1;
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", true);
  config.activation = read_activation(json, "activation_function", "gelu_pytorch_tanh");
  if (!json.boolean_or("scale_attn_weights", true)) config.attention_scale = 1.0;
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out_bigcode(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const std::int64_t keys = config.key_heads * config.head_width;
  const bool shared = flag_of(config, "multi_query", true);
  DecoderWeights weights;
  weights.token_embedding = walk("transformer.wte.weight", {config.vocabulary, d});
  weights.position_embedding = walk("transformer.wpe.weight", {config.context, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("transformer.h.{}.", l);
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = walk.norm(block + "ln_1", d, true);
    to.attention.q =
        walk.linear(block + "attn.c_attn", d + 2 * keys, d, true, shared ? 0 : config.heads);
    to.attention.k = to.attention.v = to.attention.q;
    to.attention.q.count = d, to.attention.k.count = to.attention.v.count = keys;
    to.attention.k.begin = d, to.attention.v.begin = d + keys;
    to.attention.o = walk.linear(block + "attn.c_proj", d, d, true);
    to.mlp_norm = walk.norm(block + "ln_2", d, true);
    to.mlp.in = walk.linear(block + "mlp.c_fc", hidden, d, true);
    to.mlp.out = walk.linear(block + "mlp.c_proj", d, hidden, true);
  }
  weights.final_norm = walk.norm("transformer.ln_f", d, true);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.out_in = true;
  return weights;
}

std::string bigcode_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with("transformer.")) return std::string(name);
  return "transformer." + std::string(name);  // a model saved without its head has no prefix
}

}  // namespace

const Family kGptBigCodeFamily =
    walked_family<lay_out_bigcode>("gpt_bigcode", read_bigcode, bigcode_name);

}  // namespace filigree

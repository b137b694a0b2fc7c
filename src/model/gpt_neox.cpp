#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "gpt_neox";
  config.layers = json.integer("num_hidden_layers", 1, 10000);
  config.heads = config.key_heads = json.integer("num_attention_heads", 1, 10000);
  config.width = json.integer("hidden_size", 1, kMostExtent);
  require(config.width % config.heads == 0,
          "{}: hidden_size {} is not a multiple of num_attention_heads {}", json.source(),
          config.width, config.heads);
  config.head_width = config.width / config.heads;
  config.mlp_width = json.integer("intermediate_size", 1, kMostExtent);
  config.context = json.integer("max_position_embeddings", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", false);
  config.norm_epsilon = json.number_or("layer_norm_eps", 1e-5, 0.0, 1.0);
  config.activation = read_activation(json, "hidden_act", "gelu");
  read_rotary(json, config,
              {.base = "rotary_emb_base", .share = "rotary_pct", .default_share = 0.25});
  config.residual = json.boolean_or("use_parallel_residual", true) ? ResidualKind::kParallel
                                                                   : ResidualKind::kSequential;
  json.boolean_or("attention_bias", true);  // lay_out() reads it, without an Error
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const bool bias = flag_of(config, "attention_bias", true);
  DecoderWeights weights;
  weights.token_embedding = walk("gpt_neox.embed_in.weight", {config.vocabulary, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("gpt_neox.layers.{}.", l);
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = walk.norm(block + "input_layernorm", d, true);
    to.mlp_norm = walk.norm(block + "post_attention_layernorm", d, true);
    to.attention.q = walk.linear(block + "attention.query_key_value", 3 * d, d, bias, config.heads);
    to.attention.q.count = d;
    to.attention.k = to.attention.v = to.attention.q;
    to.attention.k.begin = d, to.attention.v.begin = 2 * d;
    to.attention.o = walk.linear(block + "attention.dense", d, d, bias);
    to.mlp.in = walk.linear(block + "mlp.dense_h_to_4h", hidden, d, true);
    to.mlp.out = walk.linear(block + "mlp.dense_4h_to_h", d, hidden, true);
  }
  weights.final_norm = walk.norm("gpt_neox.final_layer_norm", d, true);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("embed_out.weight", {config.vocabulary, d});
  weights.output.out_in = true;
  return weights;
}

std::string canonical_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  for (const char* buffer : {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"})
    if (name.ends_with(buffer)) return "";
  if (name == "embed_out.weight" || name == "lm_head.weight")
    return config.tied_embeddings ? "" : "embed_out.weight";
  if (name.starts_with("gpt_neox.")) return std::string(name);
  return "gpt_neox." + std::string(name);  // a model saved without its head has no prefix
}

}  // namespace

const Family kGptNeoxFamily = walked_family<lay_out>("gpt_neox", read_config, canonical_name);

}  // namespace filigree

// Phi 1, 1.5 and 2: attention and MLP beside each other behind one layer norm, heads that are
// turned in part, biases everywhere, also of the logits.
#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

ModelConfig read_phi(const JsonObject& json) {
  ModelConfig config;
  config.family = "phi";
  config.layers = json.integer("num_hidden_layers", 1, 10000);
  config.heads = json.integer("num_attention_heads", 1, 10000);
  config.key_heads = json.integer_or("num_key_value_heads", config.heads, 1, 10000);
  require(config.heads % config.key_heads == 0,
          "{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", json.source(),
          config.heads, config.key_heads);
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
  config.activation = read_activation(json, "hidden_act", "gelu_new");
  read_rotary(json, config, {.share = "partial_rotary_factor", .default_share = 0.5});
  config.residual = ResidualKind::kParallel;
  if (json.boolean_or("qk_layernorm", false)) config.query_key_norm = QueryKeyNorm::kHead;
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out_phi(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width, D = config.head_width;
  const std::int64_t keys = config.key_heads * D;
  DecoderWeights weights;
  weights.token_embedding = walk("model.embed_tokens.weight", {config.vocabulary, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("model.layers.{}.", l), attention = block + "self_attn.";
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = to.mlp_norm = walk.norm(block + "input_layernorm", d, true);
    to.attention.q = walk.linear(attention + "q_proj", d, d, true);
    to.attention.k = walk.linear(attention + "k_proj", keys, d, true);
    to.attention.v = walk.linear(attention + "v_proj", keys, d, true);
    to.attention.o = walk.linear(attention + "dense", d, d, true);
    if (config.query_key_norm != QueryKeyNorm::kNone) {
      to.attention.q_norm = walk.norm(attention + "q_layernorm", D, true);
      to.attention.k_norm = walk.norm(attention + "k_layernorm", D, true);
    }
    to.mlp.in = walk.linear(block + "mlp.fc1", hidden, d, true);
    to.mlp.out = walk.linear(block + "mlp.fc2", d, hidden, true);
  }
  weights.final_norm = walk.norm("model.final_layernorm", d, true);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.bias = walk("lm_head.bias", {config.vocabulary}, Initial::kZeros);
  weights.output.out_in = true;
  return weights;
}

std::string phi_name(const ModelConfig& config, std::string_view name) {
  if (name.ends_with(".rotary_emb.inv_freq")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name == "lm_head.bias" || name.starts_with("model.")) return std::string(name);
  return "model." + std::string(name);  // a model saved without its head has no prefix
}

}  // namespace

const Family kPhiFamily = walked_family<lay_out_phi>("phi", read_phi, phi_name);

}  // namespace filigree

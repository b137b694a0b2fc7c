// OPT: learned positions, the first two rows of which belong to no position.
#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

constexpr std::int64_t kRowsBefore = 2;

ModelConfig read_opt(const JsonObject& json) {
  ModelConfig config;
  config.family = "opt";
  config.layers = json.integer("num_hidden_layers", 1, 10000);
  config.heads = config.key_heads = json.integer("num_attention_heads", 1, 10000);
  config.width = json.integer("hidden_size", 1, kMostExtent);
  require(config.width % config.heads == 0,
          "{}: hidden_size {} is not a multiple of num_attention_heads {}", json.source(),
          config.width, config.heads);
  const std::int64_t embedded =
      json.integer_or("word_embed_proj_dim", config.width, 1, kMostExtent);
  require(embedded == config.width,
          "{}: word_embed_proj_dim {} is not supported; models whose embeddings are as wide as "
          "hidden_size {} are",
          json.source(), embedded, config.width);
  require(json.boolean_or("do_layer_norm_before", true),
          "{}: do_layer_norm_before false, norms of the stream behind each branch, is not "
          "supported; true is",
          json.source());
  require(!json.boolean_or("_remove_final_layer_norm", false),
          "{}: _remove_final_layer_norm is not supported; models with a final norm are",
          json.source());
  config.head_width = config.width / config.heads;
  config.mlp_width = json.integer("ffn_dim", 1, kMostExtent);
  config.context = json.integer("max_position_embeddings", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", true);
  config.activation = read_activation(json, "activation_function", "relu");
  config.first_position = kRowsBefore;
  // lay_out_opt() reads them, without an Error.
  for (const char* key : {"enable_bias", "layer_norm_elementwise_affine"})
    json.boolean_or(key, true);
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out_opt(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const bool bias = flag_of(config, "enable_bias", true);
  const bool affine = flag_of(config, "layer_norm_elementwise_affine", true);
  const auto norm = [&](const std::string& name) {
    return affine ? walk.norm(name, d, true) : NormWeights();
  };
  DecoderWeights weights;
  weights.token_embedding = walk("model.decoder.embed_tokens.weight", {config.vocabulary, d});
  weights.position_embedding =
      walk("model.decoder.embed_positions.weight", {config.context + kRowsBefore, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("model.decoder.layers.{}.", l);
    const std::string attention = block + "self_attn.";
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = norm(block + "self_attn_layer_norm");
    to.attention.q = walk.linear(attention + "q_proj", d, d, bias);
    to.attention.k = walk.linear(attention + "k_proj", d, d, bias);
    to.attention.v = walk.linear(attention + "v_proj", d, d, bias);
    to.attention.o = walk.linear(attention + "out_proj", d, d, bias);
    to.mlp_norm = norm(block + "final_layer_norm");
    to.mlp.in = walk.linear(block + "fc1", hidden, d, bias);
    to.mlp.out = walk.linear(block + "fc2", d, hidden, bias);
  }
  weights.final_norm = norm("model.decoder.final_layer_norm");
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.out_in = true;
  return weights;
}

std::string opt_name(const ModelConfig& config, std::string_view name) {
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with("model.")) return std::string(name);
  // The first checkpoints on the hub, and models saved without their head.
  return "model." + std::string(name);
}

}  // namespace

const Family kOptFamily = walked_family<lay_out_opt>("opt", read_opt, opt_name);

}  // namespace filigree

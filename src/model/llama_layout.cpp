#include "model/llama_layout.h"

#include "filigree/error.h"
#include "model/decoder.h"

namespace filigree {
namespace {

constexpr const char* kPrefix = "model.";

DecoderWeights lay_out(const ModelConfig& config, const LlamaLayout& layout, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const std::int64_t queries = config.heads * config.head_width;
  const std::int64_t keys = config.key_heads * config.head_width;
  const Initial gain = config.norm_around_one ? Initial::kZeros : Initial::kOnes;
  const auto norm = [&](const std::string& name, std::int64_t width) {
    return layout.norm_weights ? walk.norm(name, width, false, gain) : NormWeights();
  };
  DecoderWeights weights;
  weights.token_embedding = walk("model.embed_tokens.weight", {config.vocabulary, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("model.layers.{}.", l), attention = block + "self_attn.";
    DecoderBlock& to = weights.blocks.emplace_back();
    const bool before = config.branch_norms != BranchNorms::kAfter;
    const bool after = config.branch_norms != BranchNorms::kBefore;
    to.attention_norm = before ? norm(block + "input_layernorm", d) : kNoNorm;
    to.attention.q = walk.linear(attention + "q_proj", queries, d, layout.qkv_bias);
    to.attention.k = walk.linear(attention + "k_proj", keys, d, layout.qkv_bias);
    to.attention.v = walk.linear(attention + "v_proj", keys, d, layout.qkv_bias);
    to.attention.o = walk.linear(attention + "o_proj", d, queries, layout.output_bias);
    if (config.query_key_norm != QueryKeyNorm::kNone) {
      const bool by_head = config.query_key_norm == QueryKeyNorm::kHead;
      to.attention.q_norm = norm(attention + "q_norm", by_head ? config.head_width : queries);
      to.attention.k_norm = norm(attention + "k_norm", by_head ? config.head_width : keys);
    }
    // With norms in front of the branches only, the second is called as if it stood behind.
    if (after) to.attention_post_norm = norm(block + "post_attention_layernorm", d);
    to.mlp_norm = !before ? kNoNorm
                  : after ? norm(block + "pre_feedforward_layernorm", d)
                          : norm(block + "post_attention_layernorm", d);
    to.mlp.gate = walk.linear(block + "mlp.gate_proj", hidden, d, layout.mlp_bias);
    to.mlp.in = walk.linear(block + "mlp.up_proj", hidden, d, layout.mlp_bias);
    to.mlp.out = walk.linear(block + "mlp.down_proj", d, hidden, layout.mlp_bias);
    if (after) to.mlp_post_norm = norm(block + "post_feedforward_layernorm", d);
  }
  weights.final_norm = norm("model.norm", d);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.out_in = true;
  return weights;
}

}  // namespace

ModelConfig read_llama_config(const JsonObject& json, const char* family,
                              const LlamaDefaults& defaults) {
  ModelConfig config;
  config.family = family;
  config.layers = json.integer("num_hidden_layers", 1, 10000);
  config.heads = json.integer("num_attention_heads", 1, 10000);
  config.key_heads = json.integer_or(
      "num_key_value_heads", defaults.key_heads != 0 ? defaults.key_heads : config.heads, 1, 10000);
  require(config.heads % config.key_heads == 0,
          "{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", json.source(),
          config.heads, config.key_heads);
  config.width = json.integer("hidden_size", 1, kMostExtent);
  require(json.has("head_dim") || defaults.head_width != 0 || config.width % config.heads == 0,
          "{}: without head_dim, hidden_size {} must be a multiple of num_attention_heads {}",
          json.source(), config.width, config.heads);
  config.head_width = json.integer_or(
      "head_dim", defaults.head_width != 0 ? defaults.head_width : config.width / config.heads, 1,
      kMostExtent);
  config.mlp_width = json.integer("intermediate_size", 1, kMostExtent);
  config.context = json.integer("max_position_embeddings", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", defaults.tied_embeddings);
  config.norm = NormKind::kRms;
  config.norm_epsilon = json.number_or("rms_norm_eps", defaults.norm_epsilon, 0.0, 1.0);
  read_rotary(json, config);
  config.mlp = MlpKind::kGated;
  config.activation = read_activation(json, defaults.activation_key, defaults.activation);
  config.source = json.raw();
  return config;
}

std::vector<ParameterSpec> llama_parameters(const ModelConfig& config, const LlamaLayout& layout) {
  std::vector<ParameterSpec> specs;
  lay_out(config, layout, ParameterWalk(specs));
  return specs;
}

std::string llama_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".rotary_emb.inv_freq")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with(kPrefix)) return std::string(name);
  return kPrefix + std::string(name);  // a model saved without its head has no prefix
}

std::unique_ptr<Model> build_llama(const ModelConfig& config,
                                   std::vector<NamedParameter> parameters,
                                   const LlamaLayout& layout) {
  DecoderWeights weights = lay_out(config, layout, ParameterWalk(parameters));
  return make_decoder(config, std::move(parameters), std::move(weights));
}

}  // namespace filigree

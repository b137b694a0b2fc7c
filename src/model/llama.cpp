#include "filigree/model/llama.h"

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/model/decoder.h"

namespace filigree {
namespace {

constexpr const char* kPrefix = "model.";

bool flag(const ModelConfig& config, const char* key) {
  return JsonObject(config.source, "config.json").boolean_or(key, false);
}

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "llama";
  config.layers = json.integer("num_hidden_layers", 1, 10000);
  config.heads = json.integer("num_attention_heads", 1, 10000);
  config.key_heads = json.integer_or("num_key_value_heads", config.heads, 1, 10000);
  require(config.heads % config.key_heads == 0,
          "{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", json.source(),
          config.heads, config.key_heads);
  config.width = json.integer("hidden_size", 1, kMostExtent);
  require(json.has("head_dim") || config.width % config.heads == 0,
          "{}: without head_dim, hidden_size {} must be a multiple of num_attention_heads {}",
          json.source(), config.width, config.heads);
  config.head_width = json.integer_or("head_dim", config.width / config.heads, 1, kMostExtent);
  config.mlp_width = json.integer("intermediate_size", 1, kMostExtent);
  config.context = json.integer("max_position_embeddings", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", false);
  config.norm = NormKind::kRms;
  config.norm_epsilon = json.number_or("rms_norm_eps", 1e-6, 0.0, 1.0);
  config.positions = PositionKind::kRotary;
  config.rotary_width = config.head_width;
  config.rotary_base = read_rotary_base(json);
  require(config.head_width % 2 == 0, "{}: rotary positions need heads of an even width, not {}",
          json.source(), config.head_width);
  config.mlp = MlpKind::kGated;
  config.activation = read_activation(json, "hidden_act", "silu");
  json.boolean_or("attention_bias", false);  // build() reads them, without an Error
  json.boolean_or("mlp_bias", false);
  config.source = json.raw();
  return config;
}

std::vector<ParameterSpec> parameters(const ModelConfig& config) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const std::int64_t queries = config.heads * config.head_width;
  const std::int64_t keys = config.key_heads * config.head_width;
  const bool attention_bias = flag(config, "attention_bias"), mlp_bias = flag(config, "mlp_bias");
  std::vector<ParameterSpec> specs = {{"model.embed_tokens.weight", {config.vocabulary, d}}};
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("model.layers.{}.", l);
    const auto norm = [&](const char* name) {
      specs.push_back({block + name + ".weight", {d}, Initial::kOnes});
    };
    const auto linear = [&](const char* name, std::int64_t out, std::int64_t in, bool bias) {
      specs.push_back({block + name + ".weight", {out, in}});
      if (bias) specs.push_back({block + name + ".bias", {out}, Initial::kZeros});
    };
    norm("input_layernorm");
    linear("self_attn.q_proj", queries, d, attention_bias);
    linear("self_attn.k_proj", keys, d, attention_bias);
    linear("self_attn.v_proj", keys, d, attention_bias);
    linear("self_attn.o_proj", d, queries, attention_bias);
    norm("post_attention_layernorm");
    linear("mlp.gate_proj", hidden, d, mlp_bias);
    linear("mlp.up_proj", hidden, d, mlp_bias);
    linear("mlp.down_proj", d, hidden, mlp_bias);
  }
  specs.push_back({"model.norm.weight", {d}, Initial::kOnes});
  if (!config.tied_embeddings) specs.push_back({"lm_head.weight", {config.vocabulary, d}});
  return specs;
}

std::string canonical_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".rotary_emb.inv_freq")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with(kPrefix)) return std::string(name);
  return kPrefix + std::string(name);  // a model saved without its head has no prefix
}

std::unique_ptr<Model> build(const ModelConfig& config, std::vector<NamedParameter> parameters) {
  const bool attention_bias = flag(config, "attention_bias"), mlp_bias = flag(config, "mlp_bias");
  ParametersInOrder take(parameters);
  DecoderWeights weights;
  weights.token_embedding = take.next();
  for (std::int64_t l = 0; l < config.layers; ++l) {
    DecoderBlock block;
    block.attention_norm = take.norm(false);
    block.attention.q = take.linear_out_in(attention_bias);
    block.attention.k = take.linear_out_in(attention_bias);
    block.attention.v = take.linear_out_in(attention_bias);
    block.attention.o = take.linear_out_in(attention_bias);
    block.mlp_norm = take.norm(false);
    block.mlp.gate = take.linear_out_in(mlp_bias);
    block.mlp.in = take.linear_out_in(mlp_bias);
    block.mlp.out = take.linear_out_in(mlp_bias);
    weights.blocks.push_back(std::move(block));
  }
  weights.final_norm = take.norm(false);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding : take.next();
  weights.output.out_in = true;
  return make_decoder(config, std::move(parameters), std::move(weights));
}

}  // namespace

const Family kLlamaFamily = {"llama", read_config, parameters, canonical_name, build};

}  // namespace filigree

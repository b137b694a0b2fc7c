#include "model/llama_layout.h"

#include "filigree/error.h"
#include "model/decoder.h"

namespace filigree {
namespace {

constexpr const char* kPrefix = "model.";

class LlamaWalk {
 public:
  LlamaWalk(const ModelConfig& config, const LlamaLayout& layout, ParameterWalk walk)
      : config_(config), layout_(layout), walk_(walk) {}

  DecoderWeights operator()() {
    const std::int64_t d = config_.width;
    DecoderWeights weights;
    weights.token_embedding = walk_("model.embed_tokens.weight", {config_.vocabulary, d});
    for (std::int64_t l = 0; l < config_.layers; ++l) {
      const std::string block = fmt::format("model.layers.{}.", l);
      DecoderBlock& to = weights.blocks.emplace_back();
      const bool before = config_.branch_norms != BranchNorms::kAfter;
      const bool after = config_.branch_norms != BranchNorms::kBefore;
      to.attention_norm = before ? norm(block + "input_layernorm", d) : kNoNorm;
      attention(block + "self_attn.", to.attention);
      // With norms in front of the branches only, the second is called as if it stood behind.
      if (after) to.attention_post_norm = norm(block + "post_attention_layernorm", d);
      to.mlp_norm = !before            ? kNoNorm
                    : layout_.one_norm ? to.attention_norm
                    : after            ? norm(block + "pre_feedforward_layernorm", d)
                                       : norm(block + "post_attention_layernorm", d);
      mlp(block + "mlp.", to.mlp);
      if (after) to.mlp_post_norm = norm(block + "post_feedforward_layernorm", d);
    }
    weights.final_norm = norm("model.norm", d);
    weights.output.weight = config_.tied_embeddings
                                ? weights.token_embedding
                                : walk_("lm_head.weight", {config_.vocabulary, d});
    weights.output.out_in = true;
    return weights;
  }

 private:
  NormWeights norm(const std::string& name, std::int64_t width) {
    if (!layout_.norm_weights) return {};
    return walk_.norm(name, width, layout_.norm_bias,
                      config_.norm_around_one ? Initial::kZeros : Initial::kOnes);
  }

  void attention(const std::string& name, AttentionWeights& to) {
    const std::int64_t d = config_.width, D = config_.head_width;
    const std::int64_t queries = config_.heads * D, keys = config_.key_heads * D;
    if (layout_.fused) {
      to.q = walk_.linear(name + "qkv_proj", queries + 2 * keys, d, layout_.qkv_bias);
      to.k = to.v = to.q;
      to.q.count = queries, to.k.count = to.v.count = keys;
      to.k.begin = queries, to.v.begin = queries + keys;
    } else {
      to.q = turned(name + "q_proj", config_.heads);
      to.k = turned(name + "k_proj", config_.key_heads);
      to.v = walk_.linear(name + "v_proj", keys, d, layout_.qkv_bias);
    }
    to.o = walk_.linear(name + "o_proj", d, queries, layout_.output_bias);
    switch (config_.query_key_norm) {
      case QueryKeyNorm::kNone: break;
      case QueryKeyNorm::kHead:
        to.q_norm = norm(name + "q_norm", D);
        to.k_norm = norm(name + "k_norm", D);
        break;
      case QueryKeyNorm::kEachHead:
        if (layout_.norms_by_head) {
          to.q_norm.by_head = gains_by_head(name + "q_layernorm", config_.heads);
          to.k_norm.by_head = gains_by_head(name + "k_layernorm", config_.key_heads);
          break;
        }
        to.q_norm.weight = own_gains(name + "q_norm", config_.heads);
        to.k_norm.weight = own_gains(name + "k_norm", config_.key_heads);
        break;
      case QueryKeyNorm::kAllHeads:
        to.q_norm = norm(name + "q_norm", queries);
        to.k_norm = norm(name + "k_norm", keys);
        break;
    }
  }

  // A matrix of queries or keys.
  LinearWeight turned(const std::string& name, std::int64_t heads) {
    const std::int64_t rows = heads * config_.head_width;
    if (!layout_.paired) return walk_.linear(name, rows, config_.width, layout_.qkv_bias);
    return walk_.paired_linear(name, rows, config_.width, layout_.qkv_bias, heads,
                               config_.rotary_width);
  }
  // Gains [heads, D] of a norm of queries or keys.
  Variable own_gains(const std::string& name, std::int64_t heads) {
    const std::int64_t D = config_.head_width;
    return walk_({.name = name + ".weight",
                  .shape = {heads * D},
                  .initial = Initial::kOnes,
                  .file_shape = {heads, D},
                  .paired_heads = layout_.paired ? heads : 0,
                  .paired_width = layout_.paired ? config_.rotary_width : 0});
  }

  // The same, a tensor each.
  std::vector<Variable> gains_by_head(const std::string& name, std::int64_t heads) {
    std::vector<Variable> gains;
    for (std::int64_t h = 0; h < heads; ++h)
      gains.push_back(
          walk_(fmt::format("{}.norms.{}.weight", name, h), {config_.head_width}, Initial::kOnes));
    return gains;
  }

  void mlp(const std::string& name, MlpWeights& to) {
    const std::int64_t d = config_.width, hidden = config_.mlp_width;
    if (config_.mlp == MlpKind::kPlain) {
      to.in = walk_.linear(name + "c_fc", hidden, d, layout_.mlp_bias);
      to.out = walk_.linear(name + "c_proj", d, hidden, layout_.mlp_bias);
      return;
    }
    if (config_.mlp == MlpKind::kExperts) {
      to.router = walk_.linear(name + "gate", config_.experts, d, false);
      for (std::int64_t e = 0; e < config_.experts; ++e) {
        const std::string of_expert = fmt::format("{}experts.{}.", name, e);
        ExpertWeights& expert = to.experts.emplace_back();
        expert.gate = walk_.linear(of_expert + "gate_proj", hidden, d, layout_.mlp_bias);
        expert.in = walk_.linear(of_expert + "up_proj", hidden, d, layout_.mlp_bias);
        expert.out = walk_.linear(of_expert + "down_proj", d, hidden, layout_.mlp_bias);
      }
      return;
    }
    if (layout_.fused) {
      to.gate = to.in = walk_.linear(name + "gate_up_proj", 2 * hidden, d, layout_.mlp_bias);
      to.gate.count = to.in.count = to.in.begin = hidden;
    } else {
      to.gate = walk_.linear(name + "gate_proj", hidden, d, layout_.mlp_bias);
      to.in = walk_.linear(name + "up_proj", hidden, d, layout_.mlp_bias);
    }
    to.out = walk_.linear(name + "down_proj", d, hidden, layout_.mlp_bias);
  }

  const ModelConfig& config_;
  const LlamaLayout& layout_;
  ParameterWalk walk_;
};

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
  config.norm_epsilon = json.number_or(defaults.epsilon_key, defaults.norm_epsilon, 0.0, 1.0);
  read_rotary(json, config, defaults.rotary);
  config.mlp = MlpKind::kGated;
  config.activation = read_activation(json, defaults.activation_key, defaults.activation);
  config.source = json.raw();
  return config;
}

void read_experts(const JsonObject& json, const char* width_key, const ExpertDefaults& defaults,
                  ModelConfig& config) {
  constexpr std::int64_t kMostExperts = 65536;  // of all layers together
  config.mlp = MlpKind::kExperts;
  config.mlp_width = json.integer(width_key, 1, kMostExtent);
  // The second is what some versions of transformers call it.
  const char* const key = json.has("num_experts") ? "num_experts" : "num_local_experts";
  config.experts = json.integer_or(key, defaults.experts, 1, kMostExperts);
  require(config.experts * config.layers <= kMostExperts,
          "{}: num_experts {} in each of {} layers are more than this program takes, {} in all",
          json.source(), config.experts, config.layers, kMostExperts);
  config.experts_per_token =
      json.integer_or("num_experts_per_tok", defaults.per_token, 1, kMostExperts);
  require(config.experts_per_token <= config.experts,
          "{}: num_experts_per_tok {} is more than num_experts {}", json.source(),
          config.experts_per_token, config.experts);
  config.expert_gates_sum_to_one = json.boolean_or("norm_topk_prob", false);
}

std::vector<ParameterSpec> llama_parameters(const ModelConfig& config, const LlamaLayout& layout) {
  std::vector<ParameterSpec> specs;
  LlamaWalk(config, layout, ParameterWalk(specs))();
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
  DecoderWeights weights = LlamaWalk(config, layout, ParameterWalk(parameters))();
  return make_decoder(config, std::move(parameters), std::move(weights));
}

}  // namespace filigree

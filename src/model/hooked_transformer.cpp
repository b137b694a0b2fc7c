// The models of TransformerLens: small ones of any shape, trained from scratch. config.json has the
// names of its HookedTransformerConfig, and the tensors have those of its state dict. What a state
// dict without config.json tells of the model is read in transformer_lens.cpp.
#include <cmath>

#include "filigree/error.h"
#include "filigree/names.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

// "" where the value is null, the fallback where there is none.
std::string name_or_none(const JsonObject& json, const char* key, const char* fallback) {
  if (json.raw().contains(key) && json.raw()[key].is_null()) return "";
  return json.string_or(key, fallback);
}

// Throws unless the value is one of those known.
void require_one_of(const JsonObject& json, const char* key, const std::string& value,
                    const std::vector<std::string>& known) {
  require(std::ranges::find(known, value) != known.end(),
          "{}: {} '{}' is not supported; it may be {}", json.source(), key, printable(value),
          any_of_text(known));
}

// What changes the function and is not computed here: refused unless it is off.
void refuse_other_kinds(const JsonObject& json) {
  for (const char* key :
       {"use_normalization_before_and_after", "final_rms", "post_embedding_ln",
        "use_NTK_by_parts_rope", "use_yarn_rope", "use_dynamic_ntk_rope", "use_logn_attn",
        "use_attention_sinks", "rotary_adjacent_pairs", "load_in_4bit"})
    require(!json.boolean_or(key, false), "{}: {} is not supported", json.source(), key);
  for (const char* key :
       {"num_experts", "relative_attention_num_buckets", "clip_qkv", "quantization_method"})
    require(!json.has(key), "{}: {} is not supported", json.source(), key);
  require(json.number_or("rotary_scaling_factor", 1.0) == 1.0,
          "{}: rotary_scaling_factor {} is not supported; 1 is", json.source(),
          json.number_or("rotary_scaling_factor", 1.0));
}

void read_norm(const JsonObject& json, ModelConfig& config) {
  const std::string norm = name_or_none(json, "normalization_type", "LN");
  if (!norm.empty())
    require_one_of(json, "normalization_type", norm, {"LN", "LNPre", "RMS", "RMSPre"});
  config.norm =
      norm.empty() ? NormKind::kNone : (norm.starts_with("LN") ? NormKind::kLayer : NormKind::kRms);
  config.norm_epsilon = json.number_or("eps", 1e-5, 0.0, 1.0);
}

void read_mlp(const JsonObject& json, ModelConfig& config) {
  config.residual = json.boolean_or("parallel_attn_mlp", false) ? ResidualKind::kParallel
                                                                : ResidualKind::kSequential;
  if (json.boolean_or("attn_only", false)) {
    require(config.residual == ResidualKind::kSequential,
            "{}: parallel_attn_mlp needs MLPs, and attn_only leaves them out", json.source());
    config.mlp = MlpKind::kNone;
    return;
  }
  config.mlp_width = json.integer_or("d_mlp", 4 * config.width, 1, kMostExtent);
  const bool gated = json.boolean_or("gated_mlp", false);
  const std::string name = json.string_or("act_fn", "relu");
  if (name == "solu" || name == "solu_ln") {
    require(!gated, "{}: act_fn '{}' with gated_mlp is not supported", json.source(), name);
    config.mlp = MlpKind::kSolu;
    config.mlp_norm = name == "solu_ln";
    return;
  }
  if (gated) config.mlp = MlpKind::kGated;
  config.activation = read_activation(json, "act_fn", "relu");
}

void read_positions(const JsonObject& json, ModelConfig& config) {
  const std::string kind = name_or_none(json, "positional_embedding_type", "standard");
  if (kind.empty() || kind == "none") {
    config.positions = PositionKind::kNone;
    return;
  }
  require_one_of(json, "positional_embedding_type", kind,
                 {"standard", "rotary", "shortformer", "none"});
  if (kind == "shortformer") config.positions = PositionKind::kShortformer;
  if (kind != "rotary") return;
  config.positions = PositionKind::kRotary;
  config.rotary_base = json.number_or("rotary_base", 10000.0, 1.0, 1e12);
  config.rotary_width = json.integer_or("rotary_dim", config.head_width, 2, config.head_width);
  require(config.rotary_width % 2 == 0,
          "{}: rotary_dim {} is odd; positions turn pairs of a head's elements", json.source(),
          config.rotary_width);
}

void read_attention(const JsonObject& json, ModelConfig& config) {
  const std::string direction = json.string_or("attention_dir", "causal");
  require_one_of(json, "attention_dir", direction, {"causal", "bidirectional"});
  config.bidirectional = direction == "bidirectional";
  // TransformerLens divides by its attn_scale; -1 stands for the root of the head's width.
  const double divisor = json.number_or("attn_scale", -1.0, -1.0, 1e6);
  require(divisor == -1.0 || divisor > 0.0, "{}: attn_scale {} must be -1 or positive",
          json.source(), divisor);
  if (divisor > 0.0) config.attention_scale = 1.0 / divisor;
  if (!json.boolean_or("use_attn_scale", true)) config.attention_scale = 1.0;
  config.scale_by_layer = json.boolean_or("scale_attn_by_inverse_layer_idx", false);
  const auto cap = [&](const char* key) {
    const double value = json.number_or(key, -1.0, -1.0, 1e6);
    return static_cast<float>(value > 0.0 ? value : 0.0);
  };
  config.score_soft_cap = cap("attn_scores_soft_cap");
  config.logit_soft_cap = cap("output_logits_soft_cap");
  if (json.boolean_or("use_qk_norm", false)) config.query_key_norm = QueryKeyNorm::kHead;
  if (!json.boolean_or("use_local_attn", false)) return;
  require(!config.bidirectional, "{}: use_local_attn needs causal attention", json.source());
  const std::int64_t window = json.integer("window_size", 1, kMostExtent);
  const nlohmann::json& types = json.array("attn_types");
  require(static_cast<std::int64_t>(types.size()) == config.layers,
          "{}: attn_types has {} entries for {} layers", json.source(), types.size(),
          config.layers);
  for (const nlohmann::json& type : types) {
    const std::string name = type.is_string() ? type.get<std::string>() : type.dump();
    require_one_of(json, "attn_types", name, {"global", "local"});
    config.windows.push_back(name == "local" ? window : 0);
  }
}

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "hooked_transformer";
  config.layers = json.integer("n_layers", 1, 10000);
  config.width = json.integer("d_model", 1, kMostExtent);
  config.head_width = json.integer("d_head", 1, kMostExtent);
  config.heads = json.integer_or("n_heads", -1, -1, 10000);
  if (config.heads < 1) config.heads = config.width / config.head_width;
  require(config.heads >= 1, "{}: n_heads is not given, and d_model {} holds no head of {}",
          json.source(), config.width, config.head_width);
  config.key_heads = json.integer_or("n_key_value_heads", config.heads, 1, config.heads);
  require(config.heads % config.key_heads == 0,
          "{}: n_heads {} is not a multiple of n_key_value_heads {}", json.source(), config.heads,
          config.key_heads);
  config.context = json.integer("n_ctx", 1, kMostExtent);
  config.vocabulary = json.integer("d_vocab", 1, kMostExtent);
  const std::int64_t outputs = json.integer_or("d_vocab_out", -1, -1, kMostExtent);
  if (outputs > 0 && outputs != config.vocabulary) config.classes = outputs;
  config.tied_embeddings = false;
  config.lens_taps = true;
  refuse_other_kinds(json);
  read_norm(json, config);
  read_mlp(json, config);
  read_positions(json, config);
  read_attention(json, config);
  config.source = json.raw();
  return config;
}

// Whether the norms have weights, which the names of those without end in "Pre".
bool has_weights(const ModelConfig& config) {
  return config.norm != NormKind::kNone &&
         !name_or_none(JsonObject(config.source, "config.json"), "normalization_type", "LN")
              .ends_with("Pre");
}

// The parameters in TransformerLens's shapes, into their places.
class LensWalk {
 public:
  LensWalk(const ModelConfig& config, std::vector<ParameterSpec>& list)
      : config_(config), list_(&list) {}
  LensWalk(const ModelConfig& config, const std::vector<NamedParameter>& values)
      : config_(config), values_(&values) {}

  DecoderWeights operator()() {
    const std::int64_t d = config_.width;
    DecoderWeights weights;
    weights.token_embedding = matrix("embed.W_E", {config_.vocabulary, d});
    const PositionKind positions = config_.positions;
    if (positions == PositionKind::kLearned || positions == PositionKind::kShortformer)
      weights.position_embedding = matrix("pos_embed.W_pos", {config_.context, d});
    for (std::int64_t l = 0; l < config_.layers; ++l) {
      block_ = fmt::format("blocks.{}.", l);
      DecoderBlock& to = weights.blocks.emplace_back();
      to.attention_norm = norm("ln1", d);
      attention(to.attention);
      if (config_.mlp == MlpKind::kNone) {
        to.mlp_norm = kNoNorm;
        continue;
      }
      to.mlp_norm = norm("ln2", d);
      mlp(to.mlp);
    }
    block_.clear();
    weights.final_norm = norm("ln_final", d);
    weights.output.weight = matrix("unembed.W_U", {d, config_.outputs()});
    weights.output.bias = vector("unembed.b_U", {config_.outputs()});
    return weights;
  }

 private:
  Variable take(ParameterSpec spec) {
    if (values_ != nullptr) return values_->at(next_++).variable;
    spec.name = block_ + spec.name;
    // As TransformerLens draws its own.
    spec.deviation = 0.8f / std::sqrt(static_cast<float>(config_.width));
    list_->push_back(std::move(spec));
    return {};
  }
  Variable matrix(const char* name, const Shape& shape) { return take({name, shape}); }
  Variable vector(const char* name, const Shape& file_shape, Initial initial = Initial::kZeros) {
    return take({.name = name,
                 .shape = {file_shape.elements()},
                 .initial = initial,
                 .file_shape = file_shape,
                 .may_be_absent = initial == Initial::kZeros});
  }
  NormWeights norm(const std::string& name, std::int64_t width) {
    NormWeights to;
    if (!has_weights(config_)) return to;
    to.weight = vector((name + ".w").c_str(), {width}, Initial::kOnes);
    if (config_.norm == NormKind::kLayer) to.bias = vector((name + ".b").c_str(), {width});
    return to;
  }
  // Grouped keys and values are stored under a name with an underscore.
  LinearWeight projection(const char* weight, const char* bias, std::int64_t heads) {
    const std::int64_t d = config_.width, D = config_.head_width;
    LinearWeight to;
    to.weight = take(
        {.name = weight, .shape = {d, heads * D}, .file_shape = {heads, d, D}, .by_head = true});
    to.bias = vector(bias, {heads, D});
    return to;
  }
  void attention(AttentionWeights& to) {
    const std::int64_t d = config_.width, D = config_.head_width, H = config_.heads;
    const bool grouped = config_.key_heads != H;
    to.q = projection("attn.W_Q", "attn.b_Q", H);
    to.k = projection(grouped ? "attn._W_K" : "attn.W_K", grouped ? "attn._b_K" : "attn.b_K",
                      config_.key_heads);
    to.v = projection(grouped ? "attn._W_V" : "attn.W_V", grouped ? "attn._b_V" : "attn.b_V",
                      config_.key_heads);
    to.o.weight = take({.name = "attn.W_O", .shape = {H * D, d}, .file_shape = {H, D, d}});
    to.o.bias = vector("attn.b_O", {d});
    if (config_.query_key_norm == QueryKeyNorm::kNone) return;
    to.q_norm.weight = vector("attn.q_norm.w", {D}, Initial::kOnes);
    to.k_norm.weight = vector("attn.k_norm.w", {D}, Initial::kOnes);
  }
  void mlp(MlpWeights& to) {
    const std::int64_t d = config_.width, hidden = config_.mlp_width;
    to.in.weight = matrix("mlp.W_in", {d, hidden});
    const Variable bias = vector("mlp.b_in", {hidden});
    // In a gated MLP TransformerLens adds it to the product.
    (config_.mlp == MlpKind::kGated ? to.product_bias : to.in.bias) = bias;
    if (config_.mlp == MlpKind::kGated) to.gate.weight = matrix("mlp.W_gate", {d, hidden});
    to.out.weight = matrix("mlp.W_out", {hidden, d});
    to.out.bias = vector("mlp.b_out", {d});
    if (!config_.mlp_norm || config_.norm != NormKind::kLayer || !has_weights(config_)) return;
    to.norm.weight = vector("mlp.ln.w", {hidden}, Initial::kOnes);
    to.norm.bias = vector("mlp.ln.b", {hidden});
  }

  const ModelConfig& config_;
  std::vector<ParameterSpec>* list_ = nullptr;
  const std::vector<NamedParameter>* values_ = nullptr;
  std::size_t next_ = 0;
  std::string block_;
};

std::vector<ParameterSpec> parameters(const ModelConfig& config) {
  std::vector<ParameterSpec> specs;
  LensWalk(config, specs)();
  return specs;
}

std::string canonical_name(const ModelConfig& /*config*/, std::string_view name) {
  for (const char* buffer : {".attn.mask", ".attn.IGNORE", ".attn.rotary_sin", ".attn.rotary_cos"})
    if (name.ends_with(buffer)) return "";
  return std::string(name);
}

std::unique_ptr<Model> build(const ModelConfig& config, std::vector<NamedParameter> parameters) {
  DecoderWeights weights = LensWalk(config, parameters)();
  return make_decoder(config, std::move(parameters), std::move(weights));
}

}  // namespace

const Family kHookedTransformerFamily = {"hooked_transformer", read_config, parameters,
                                         canonical_name, build};

}  // namespace filigree

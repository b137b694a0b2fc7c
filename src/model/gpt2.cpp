#include "filigree/model/gpt2.h"

#include <cmath>

#include "filigree/autograd/recompute.h"
#include "filigree/autograd/tape.h"
#include "filigree/base/error.h"
#include "filigree/nn/branch_inputs.h"
#include "filigree/nn/mlp.h"
#include "filigree/nn/norm.h"
#include "filigree/nn/self_attention.h"
#include "filigree/ops/elementwise/elementwise.h"
#include "filigree/ops/embedding/embedding.h"
#include "filigree/ops/layout/layout.h"

namespace filigree {
namespace {

constexpr std::int64_t kMost = 1 << 24;  // of any extent: far above every model, far below overflow

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "gpt2";
  config.layers = json.integer("n_layer", 1, 10000);
  config.heads = config.key_heads = json.integer("n_head", 1, 10000);
  config.width = json.integer("n_embd", 1, kMost);
  require(config.width % config.heads == 0, "{}: n_embd {} is not a multiple of n_head {}",
          json.source(), config.width, config.heads);
  config.head_width = config.width / config.heads;
  config.mlp_width = json.integer_or("n_inner", 4 * config.width, 1, kMost);
  config.context = json.integer("n_positions", 1, kMost);
  config.vocabulary = json.integer("vocab_size", 1, kMost);
  config.norm_epsilon = json.number_or("layer_norm_epsilon", 1e-5, 0.0, 1.0);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", true);
  const std::string activation = json.string_or("activation_function", "gelu_new");
  require(activation == "gelu_new" || activation == "gelu_pytorch_tanh",
          "{}: activation_function '{}' is not supported; 'gelu_new' and 'gelu_pytorch_tanh' are",
          json.source(), activation);
  require(!json.boolean_or("add_cross_attention", false),
          "{}: add_cross_attention is not supported; only decoder models are", json.source());
  require(json.boolean_or("scale_attn_weights", true),
          "{}: scale_attn_weights false is not supported", json.source());
  config.source = json.raw();
  return config;
}

std::vector<ParameterSpec> parameters(const ModelConfig& config) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  // Matrices that write to the residual stream start smaller, by the number of writers.
  const float writer = 0.02f / std::sqrt(2.0f * static_cast<float>(config.layers));
  std::vector<ParameterSpec> specs = {
      {"transformer.wte.weight", {config.vocabulary, d}, Initial::kNormal},
      {"transformer.wpe.weight", {config.context, d}, Initial::kNormal, 0.01f},
  };
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("transformer.h.{}.", l);
    const auto add = [&](const char* name, const Shape& shape, Initial initial,
                         float deviation = 0.02f) {
      specs.push_back({block + name, shape, initial, deviation});
    };
    add("ln_1.weight", {d}, Initial::kOnes);
    add("ln_1.bias", {d}, Initial::kZeros);
    add("attn.c_attn.weight", {d, 3 * d}, Initial::kNormal);
    add("attn.c_attn.bias", {3 * d}, Initial::kZeros);
    add("attn.c_proj.weight", {d, d}, Initial::kNormal, writer);
    add("attn.c_proj.bias", {d}, Initial::kZeros);
    add("ln_2.weight", {d}, Initial::kOnes);
    add("ln_2.bias", {d}, Initial::kZeros);
    add("mlp.c_fc.weight", {d, hidden}, Initial::kNormal);
    add("mlp.c_fc.bias", {hidden}, Initial::kZeros);
    add("mlp.c_proj.weight", {hidden, d}, Initial::kNormal, writer);
    add("mlp.c_proj.bias", {d}, Initial::kZeros);
  }
  specs.push_back({"transformer.ln_f.weight", {d}, Initial::kOnes});
  specs.push_back({"transformer.ln_f.bias", {d}, Initial::kZeros});
  if (!config.tied_embeddings)
    specs.push_back({"lm_head.weight", {config.vocabulary, d}, Initial::kNormal});
  return specs;
}

std::string canonical_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with("transformer.")) return std::string(name);
  return "transformer." + std::string(name);  // the checkpoints on the hub have no prefix
}

struct Block {
  NormWeights ln1, ln2;
  AttentionWeights attention;
  MlpWeights mlp;
};

class Gpt2 final : public Model {
 public:
  Gpt2(const ModelConfig& config, std::vector<NamedParameter> named)
      : Model(config, std::move(named)) {
    std::size_t next = 0;
    const auto take = [&] { return parameters_.at(next++).variable; };
    const auto epsilon = static_cast<float>(config.norm_epsilon);
    const auto norm = [&] {
      const Variable weight = take();
      return NormWeights{weight, take(), epsilon};
    };
    const auto linear_layer = [&] {
      const Variable weight = take();
      return LinearWeight{weight, take()};
    };
    const bool by_layer =
        config.source.is_object() && config.source.value("scale_attn_by_inverse_layer_idx", false);
    token_embedding_ = take();
    position_embedding_ = take();
    const std::int64_t d = config.width;
    for (std::int64_t l = 0; l < config.layers; ++l) {
      Block block;
      block.ln1 = norm();
      const LinearWeight fused = linear_layer();  // [d, 3 d]: q, k, v side by side
      block.attention.q = {fused.weight, fused.bias, false, 0, d};
      block.attention.k = {fused.weight, fused.bias, false, d, d};
      block.attention.v = {fused.weight, fused.bias, false, 2 * d, d};
      block.attention.o = linear_layer();
      block.attention.heads = config.heads;
      block.attention.key_heads = config.key_heads;
      block.attention.head_width = config.head_width;
      block.attention.scale = 1.0f / std::sqrt(static_cast<float>(config.head_width)) /
                              static_cast<float>(by_layer ? l + 1 : 1);
      block.ln2 = norm();
      block.mlp.in = linear_layer();
      block.mlp.out = linear_layer();
      blocks_.push_back(std::move(block));
    }
    final_norm_ = norm();
    output_.weight = config.tied_embeddings ? token_embedding_ : take();
    output_.out_in = true;
    name_taps();
  }

  ModelWeights weights() const override {
    ModelWeights weights = {token_embedding_, {}, final_norm_, output_};
    for (const Block& block : blocks_) weights.layers.push_back({block.ln1, &block.attention});
    return weights;
  }
  const LinearWeight& output_layer() const override { return output_; }

 private:
  Variable run(const Tensor& ids, const ForwardOptions& options) const override {
    const TapScope tap(options.taps, "");
    const std::int64_t B = ids.size(0), T = ids.size(1);
    const std::int64_t past = options.cache != nullptr ? options.cache->length() : 0;

    const DType dtype = placement().precision;
    std::size_t first = 0;
    bool skip_attention = false;
    Variable x;  // [B, T, d]
    if (options.start != nullptr) {
      first = static_cast<std::size_t>(options.start->layer);
      skip_attention = options.start->after_attention;
      x = placed(options.start->residual, placement().device, dtype);
    } else {
      const Variable tokens = tap("hook_embed", embedding(token_embedding_, ids, dtype));
      const Variable positions =
          tap("hook_pos_embed", embedding(position_embedding_, position_ids(B, T, past), dtype));
      x = add(tokens, positions);
    }
    const bool again = recomputes() && Tape::current() != nullptr && options.taps == nullptr &&
                       options.cache == nullptr && !options.last_position_only;
    for (std::size_t l = first; l < blocks_.size(); ++l) {
      const bool skip = l == first && skip_attention;
      x = again ? recomputed_block(l, x, options, skip)
                : run_block(l, x, options, skip, report_of(l, options));
    }
    if (options.precise_logits) x = placed(x, placement().device, DType::kF32);
    if (options.last_position_only && x.size(1) > 1) x = slice(x, 1, T - 1, T);  // [B, 1, d]
    return layer_norm(x, final_norm_, tap.inside("ln_final"));
  }

  // One layer, x being [B, T, d]; with `skip_attention` its MLP alone.
  Variable run_block(std::size_t l, Variable x, const ForwardOptions& options, bool skip_attention,
                     GateReport* report) const {
    const Block& block = blocks_[l];
    const std::int64_t T = x.size(1);
    const TapScope here = TapScope(options.taps, "").inside("blocks").inside(std::to_string(l));
    // Nothing reads the other positions of the last layer, unless a tap shows them or the gates
    // report or are sampled by position.
    const bool only_last = l + 1 == blocks_.size() && options.last_position_only && T > 1 &&
                           !here.wants_any() && options.reports == nullptr &&
                           options.gates != GateMode::kSampled;
    if (!skip_attention) {
      x = here("hook_resid_pre", x);
      const AttentionInputs attention_in = attention_inputs(x, block.ln1, block.attention, here);
      const std::optional<GateOptions> gate = gate_of(l, options);
      const Variable attended = self_attention(attention_in, block.attention, here.inside("attn"),
                                               options.cache, static_cast<std::int64_t>(l),
                                               gate ? &*gate : nullptr, report, only_last ? 1 : T);
      if (only_last) x = slice(x, 1, T - 1, T);
      x = add(x, here("hook_attn_out", attended));
    } else if (only_last) {
      x = slice(x, 1, T - 1, T);
    }
    x = here("hook_resid_mid", x);
    const Variable mlp_in = layer_norm(mlp_input(x, here), block.ln2, here.inside("ln2"));
    const Variable computed = mlp(mlp_in, block.mlp, here.inside("mlp"));
    return here("hook_resid_post", add(x, here("hook_mlp_out", computed)));
  }

  // The same, of which the backward pass keeps x alone.
  Variable recomputed_block(std::size_t l, const Variable& x, const ForwardOptions& options,
                            bool skip_attention) const {
    ForwardOptions own = options;
    own.reports = nullptr, own.start = nullptr;  // of the caller, who may be gone by then
    GateReport* const wanted = report_of(l, options);
    const bool reported = wanted != nullptr;
    const Recomputed result =
        recompute(x, leaves_of(l), [this, l, own, skip_attention, reported](const Variable& in) {
          GateReport report;
          const Variable y = run_block(l, in, own, skip_attention, reported ? &report : nullptr);
          return Recomputed{y, report.expected, report.active};
        });
    if (reported) *wanted = {result.second, result.note};
    return result.value;
  }

  // What a layer reads beside its input.
  std::vector<Variable> leaves_of(std::size_t l) const {
    const Block& block = blocks_[l];
    const AttentionWeights& attention = block.attention;
    std::vector<Variable> leaves;
    const auto add = [&](const Variable& leaf) {
      if (leaf.defined()) leaves.push_back(leaf);
    };
    for (const NormWeights* norm : {&block.ln1, &block.ln2}) {
      add(norm->weight);
      add(norm->bias);
    }
    for (const LinearWeight* w :
         {&attention.q, &attention.k, &attention.v, &attention.o, &block.mlp.in, &block.mlp.out}) {
      add(w->weight);
      add(w->bias);
    }
    for (const LoraAdapter* adapter :
         {&attention.lora.q, &attention.lora.k, &attention.lora.v, &attention.lora.o}) {
      add(adapter->down);
      add(adapter->up);
    }
    if (l < gate_biases().size()) add(gate_biases()[l]);
    return leaves;
  }

  std::vector<AttentionWeights*> attention_layers() override {
    std::vector<AttentionWeights*> layers;
    for (Block& block : blocks_) layers.push_back(&block.attention);
    return layers;
  }

  static Tensor position_ids(std::int64_t B, std::int64_t T, std::int64_t past) {
    Tensor ids = Tensor::empty({B, T}, DType::kI32);
    for (std::int64_t i = 0; i < B * T; ++i)
      ids.mutable_i32()[i] = static_cast<std::int32_t>(past + i % T);
    return ids;
  }

  void name_taps() {
    tap_names_ = {"hook_embed", "hook_pos_embed"};
    for (std::size_t l = 0; l < blocks_.size(); ++l)
      for (const char* name :
           {"hook_resid_pre",   "hook_q_input",          "hook_k_input",      "hook_v_input",
            "ln1.hook_scale",   "ln1.hook_normalized",   "attn.hook_q",       "attn.hook_k",
            "attn.hook_v",      "attn.hook_attn_scores", "attn.hook_pattern", "attn.hook_z",
            "attn.hook_result", "hook_attn_out",         "hook_resid_mid",    "hook_mlp_in",
            "ln2.hook_scale",   "ln2.hook_normalized",   "mlp.hook_pre",      "mlp.hook_post",
            "hook_mlp_out",     "hook_resid_post"})
        tap_names_.push_back(fmt::format("blocks.{}.{}", l, name));
    tap_names_.insert(tap_names_.end(), {"ln_final.hook_scale", "ln_final.hook_normalized"});
  }

  Variable token_embedding_, position_embedding_;
  std::vector<Block> blocks_;
  NormWeights final_norm_;
  LinearWeight output_;
};

std::unique_ptr<Model> build(const ModelConfig& config, std::vector<NamedParameter> parameters) {
  return std::make_unique<Gpt2>(config, std::move(parameters));
}

}  // namespace

const Family kGpt2Family = {"gpt2", read_config, parameters, canonical_name, build};

}  // namespace filigree

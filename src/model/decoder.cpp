#include "model/decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "autograd/recompute.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "nn/branch_inputs.h"

namespace filigree {
namespace {

float score_scale(const ModelConfig& config, std::size_t layer) {
  const float scale = config.attention_scale != 0.0
                          ? static_cast<float>(config.attention_scale)
                          : 1.0f / std::sqrt(static_cast<float>(config.head_width));
  return scale / static_cast<float>(config.scale_by_layer ? layer + 1 : 1);
}

class Decoder final : public Model {
 public:
  Decoder(const ModelConfig& config, std::vector<NamedParameter> named, DecoderWeights weights)
      : Model(config, std::move(named)), w_(std::move(weights)) {
    configure(w_.final_norm);
    w_.final_norm.factor = static_cast<float>(config.logit_scale);
    for (std::size_t l = 0; l < w_.blocks.size(); ++l) {
      DecoderBlock& block = w_.blocks[l];
      configure(block.attention_norm);
      configure(block.mlp_norm);
      configure(block.attention_post_norm);
      configure(block.mlp_post_norm);
      configure_as_it_is(block.attention.q_norm);
      configure_as_it_is(block.attention.k_norm);
      if (config.query_key_norm == QueryKeyNorm::kEachHead) {
        block.attention.q_norm.heads = config.heads;
        block.attention.k_norm.heads = config.key_heads;
      }
      block.attention.heads = config.heads;
      block.attention.key_heads = config.key_heads;
      block.attention.head_width = config.head_width;
      block.attention.scale = score_scale(config, l);
      block.attention.mask = {config.window(static_cast<std::int64_t>(l)), config.score_soft_cap,
                              config.bidirectional};
      block.attention.clip = config.clip_qkv;
      block.attention.rotary = rotary_of(static_cast<std::int64_t>(l));
      block.mlp.activation = config.activation;
      block.mlp.solu = config.mlp == MlpKind::kSolu;
      block.mlp.per_token = config.experts_per_token;
      block.mlp.gates_sum_to_one = config.expert_gates_sum_to_one;
      if (config.mlp_norm) configure_mlp_norm(block.mlp.norm);
    }
    name_taps();
  }

  ModelWeights weights() const override {
    ModelWeights weights = {
        w_.token_embedding, w_.position_embedding, {}, w_.final_norm, w_.output};
    for (const DecoderBlock& block : w_.blocks)
      weights.layers.push_back({block.attention_norm, &block.attention, block.mlp_norm,
                                block.mlp.on() ? &block.mlp : nullptr, block.attention_post_norm,
                                block.mlp_post_norm});
    return weights;
  }
  const LinearWeight& output_layer() const override { return w_.output; }

 private:
  Variable run(const Tensor& ids, const ForwardOptions& options) const override {
    const TapScope tap(options.taps, "");
    const std::int64_t B = ids.size(0), T = ids.size(1);
    const std::int64_t past = options.cache != nullptr ? options.cache->length() : 0;

    const DType dtype = placement().precision;
    std::size_t first = 0;
    bool skip_attention = false;
    Variable x;          // [B, T, d]
    Variable positions;  // the same, of which every layer's queries and keys read
    if (options.start != nullptr) {
      first = static_cast<std::size_t>(options.start->layer);
      skip_attention = options.start->after_attention;
      x = placed(options.start->residual, placement().device, dtype);
    } else {
      x = embedding(w_.token_embedding, ids, dtype);
      if (config_.embedding_scale != 1.0) x = scale(x, static_cast<float>(config_.embedding_scale));
      x = tap("hook_embed", x);
    }
    if (shortformer() || (has_position_vectors() && options.start == nullptr)) {
      positions =
          tap("hook_pos_embed", embedding(w_.position_embedding, position_ids(B, T, past), dtype));
      if (!shortformer()) x = add(x, std::exchange(positions, Variable()));
    }
    const bool again = recomputes() && Tape::current() != nullptr && options.taps == nullptr &&
                       options.cache == nullptr && !options.last_position_only;
    const std::size_t end =
        options.end_layer ? static_cast<std::size_t>(*options.end_layer) : w_.blocks.size();
    for (std::size_t l = first; l < end; ++l) {
      const bool skip = l == first && skip_attention;
      x = again ? recomputed_block(l, x, positions, options, skip)
                : run_block(l, x, positions, options, skip, report_of(l, options));
    }
    if (options.end_layer) return x;
    if (options.precise_logits) x = placed(x, placement().device, DType::kF32);
    if (options.last_position_only && x.size(1) > 1) {
      const std::int64_t kept = options.position < 0 ? T - 1 : options.position;
      require(kept < T, "forward: there is no position {} among {}", kept, T);
      x = slice(x, 1, kept, kept + 1);  // [B, 1, d]
    }
    return tap.inside("unembed")("hook_in", normalise(x, w_.final_norm, tap.inside("ln_final")));
  }

  // One layer, x being [B, T, d]; with `skip_attention` its MLP alone.
  Variable run_block(std::size_t l, Variable x, const Variable& positions,
                     const ForwardOptions& options, bool skip_attention, GateReport* report) const {
    const DecoderBlock& block = w_.blocks[l];
    const std::int64_t T = x.size(1);
    const TapScope here = TapScope(options.taps, "").inside("blocks").inside(std::to_string(l));
    // Nothing reads the other positions of the last layer, unless a tap shows them or the gates
    // report or are sampled by position.
    const bool only_last = l + 1 == w_.blocks.size() && options.last_position_only && T > 1 &&
                           options.position < 0 && !here.wants_any() &&
                           options.reports == nullptr && options.gates != GateMode::kSampled;
    Variable attended;
    if (!skip_attention) {
      x = here("hook_resid_pre", x);
      AttentionInputs inputs = attention_inputs(x, block.attention_norm, block.attention, here);
      inputs.positions = positions;
      const std::optional<GateOptions> gate = gate_of(l, options);
      attended = self_attention(inputs, block.attention, here.inside("attn"), options.cache,
                                static_cast<std::int64_t>(l), gate ? &*gate : nullptr, report,
                                only_last ? 1 : T);
      attended = here("hook_attn_out",
                      normalise(attended, block.attention_post_norm, here.inside("ln1_post")));
    }
    if (only_last) x = slice(x, 1, T - 1, T);
    if (!parallel()) {
      if (attended.defined()) x = add(x, std::exchange(attended, Variable()));
      if (!block.mlp.on()) return here("hook_resid_post", x);
      x = here("hook_resid_mid", x);
    }
    const Variable mlp_in = normalise(mlp_input(x, here), block.mlp_norm, here.inside("ln2"));
    const Variable computed =
        here("hook_mlp_out", normalise(mlp(mlp_in, block.mlp, here.inside("mlp")),
                                       block.mlp_post_norm, here.inside("ln2_post")));
    if (parallel()) x = add(x, attended);
    return here("hook_resid_post", add(x, computed));
  }

  // The same, of which the backward pass keeps x alone.
  Variable recomputed_block(std::size_t l, const Variable& x, const Variable& positions,
                            const ForwardOptions& options, bool skip_attention) const {
    ForwardOptions own = options;
    own.reports = nullptr, own.start = nullptr;  // of the caller, who may be gone by then
    GateReport* const wanted = report_of(l, options);
    const bool reported = wanted != nullptr;
    std::vector<Variable> leaves = leaves_of(l);
    if (positions.defined()) leaves.push_back(positions);
    const Recomputed result = recompute(
        x, leaves, [this, l, positions, own, skip_attention, reported](const Variable& in) {
          GateReport report;
          const Variable y =
              run_block(l, in, positions, own, skip_attention, reported ? &report : nullptr);
          return Recomputed{y, report.expected, report.active};
        });
    if (reported) *wanted = {result.second, result.note};
    return result.value;
  }

  // What a layer reads beside its input.
  std::vector<Variable> leaves_of(std::size_t l) const {
    const DecoderBlock& block = w_.blocks[l];
    const AttentionWeights& attention = block.attention;
    std::vector<Variable> leaves;
    const auto add = [&](const Variable& leaf) {
      if (leaf.defined()) leaves.push_back(leaf);
    };
    for (const NormWeights* norm :
         {&block.attention_norm, &block.mlp_norm, &block.attention_post_norm, &block.mlp_post_norm,
          &attention.q_norm, &attention.k_norm, &block.mlp.norm}) {
      add(norm->weight);
      add(norm->bias);
      for (const Variable& of_head : norm->by_head) add(of_head);
    }
    const auto add_layer = [&](const LinearWeight& w) {
      add(w.weight);
      add(w.bias);
    };
    for (const LinearWeight* w :
         {&attention.q, &attention.k, &attention.v, &attention.o, &block.mlp.in, &block.mlp.gate,
          &block.mlp.out, &block.mlp.router})
      add_layer(*w);
    for (const ExpertWeights& expert : block.mlp.experts)
      for (const LinearWeight* w : {&expert.gate, &expert.in, &expert.out}) add_layer(*w);
    for (const LoraAdapter* adapter :
         {&attention.lora.q, &attention.lora.k, &attention.lora.v, &attention.lora.o}) {
      add(adapter->down);
      add(adapter->up);
    }
    add(block.mlp.product_bias);
    if (l < gate_biases().size()) add(gate_biases()[l]);
    return leaves;
  }

  std::vector<AttentionWeights*> attention_layers() override {
    std::vector<AttentionWeights*> layers;
    for (DecoderBlock& block : w_.blocks) layers.push_back(&block.attention);
    return layers;
  }

  Tensor position_ids(std::int64_t B, std::int64_t T, std::int64_t past) const {
    Tensor ids = Tensor::empty({B, T}, DType::kI32);
    for (std::int64_t i = 0; i < B * T; ++i)
      ids.mutable_i32()[i] = static_cast<std::int32_t>(config_.first_position + past + i % T);
    return ids;
  }

  // Layers that turn by the same angles share a table; null where none turns.
  std::shared_ptr<const RotaryTable> rotary_of(std::int64_t layer) {
    if (!config_.turns(layer)) return nullptr;
    const RotaryAngles angles = config_.rotary_angles(layer);
    for (const auto& [known, table] : rotary_)
      if (known == angles) return table;
    rotary_.emplace_back(
        angles, std::make_shared<RotaryTable>(config_.rotary_width, angles.base, angles.scaling));
    return rotary_.back().second;
  }

  bool parallel() const { return config_.residual == ResidualKind::kParallel; }
  bool shortformer() const { return config_.positions == PositionKind::kShortformer; }
  bool has_position_vectors() const {
    return config_.positions == PositionKind::kLearned || shortformer();
  }

  void configure(NormWeights& norm) {
    if (!norm.on()) return;
    configure_as_it_is(norm);
    if (norm.on() && !norm.weight.defined()) norm.weight = ones(config_.width);
  }
  // A layer norm whatever the norms of the stream are.
  void configure_mlp_norm(NormWeights& norm) {
    norm.kind = NormKind::kLayer;
    norm.tap_before_gain = config_.lens_taps;
    norm.epsilon = static_cast<float>(config_.norm_epsilon);
    if (!norm.weight.defined()) norm.weight = ones(config_.mlp_width);
  }
  Variable ones(std::int64_t width) {
    for (const Variable& constant : constants_)
      if (constant.size(0) == width) return constant;
    return constants_.emplace_back(Tensor::full({width}, 1.0f));
  }
  void configure_as_it_is(NormWeights& norm) const {
    norm.kind = config_.norm;
    norm.epsilon = static_cast<float>(config_.norm_epsilon);
    norm.around_one = config_.norm_around_one;
    norm.tap_before_gain = config_.lens_taps;
  }

  // In the order in which a run passes them.
  void name_taps() {
    tap_names_ = {"hook_embed"};
    if (has_position_vectors()) tap_names_.emplace_back("hook_pos_embed");
    std::vector<const char*> names = {"hook_resid_pre", "hook_q_input", "hook_k_input",
                                      "hook_v_input"};
    const auto add = [&](std::initializer_list<const char*> more) {
      names.insert(names.end(), more);
    };
    const bool normed = config_.norm != NormKind::kNone;
    const bool before = normed && config_.branch_norms != BranchNorms::kAfter;
    const bool after = normed && config_.branch_norms != BranchNorms::kBefore;
    if (before) add({"ln1.hook_scale", "ln1.hook_normalized"});
    add({"attn.hook_q", "attn.hook_k", "attn.hook_v"});
    if (config_.query_key_norm != QueryKeyNorm::kNone)
      add({"attn.q_norm.hook_scale", "attn.q_norm.hook_normalized", "attn.k_norm.hook_scale",
           "attn.k_norm.hook_normalized"});
    const std::size_t turned = names.size();
    if (config_.positions == PositionKind::kRotary) add({"attn.hook_rot_q", "attn.hook_rot_k"});
    const std::size_t behind = names.size();
    add({"attn.hook_attn_scores", "attn.hook_pattern", "attn.hook_z", "attn.hook_result"});
    if (after) add({"ln1_post.hook_scale", "ln1_post.hook_normalized"});
    add({"hook_attn_out"});
    if (config_.mlp != MlpKind::kNone) {
      if (!parallel()) add({"hook_resid_mid"});
      add({"hook_mlp_in"});
      if (before) add({"ln2.hook_scale", "ln2.hook_normalized"});
      if (config_.mlp == MlpKind::kExperts) {
        add({"mlp.hook_router_logits", "mlp.hook_expert_weights", "mlp.hook_expert_gates",
             "mlp.hook_expert_out"});
      } else {
        add({"mlp.hook_pre"});
        if (config_.mlp == MlpKind::kGated) add({"mlp.hook_pre_linear"});
        if (config_.mlp_norm) add({"mlp.hook_mid", "mlp.ln.hook_scale", "mlp.ln.hook_normalized"});
        add({"mlp.hook_post"});
      }
      if (after) add({"ln2_post.hook_scale", "ln2_post.hook_normalized"});
      add({"hook_mlp_out"});
    }
    add({"hook_resid_post"});
    for (std::size_t l = 0; l < w_.blocks.size(); ++l)
      for (std::size_t i = 0; i < names.size(); ++i)
        if (i < turned || i >= behind || config_.turns(static_cast<std::int64_t>(l)))
          tap_names_.push_back(fmt::format("blocks.{}.{}", l, names[i]));
    if (normed)
      tap_names_.insert(tap_names_.end(), {"ln_final.hook_scale", "ln_final.hook_normalized"});
    if (config_.lens_taps)
      tap_names_.insert(tap_names_.end(), {"unembed.hook_in", "unembed.hook_out"});
  }

  DecoderWeights w_;
  std::vector<std::pair<RotaryAngles, std::shared_ptr<const RotaryTable>>> rotary_;
};

}  // namespace

std::unique_ptr<Model> make_decoder(const ModelConfig& config,
                                    std::vector<NamedParameter> parameters,
                                    DecoderWeights weights) {
  return std::make_unique<Decoder>(config, std::move(parameters), std::move(weights));
}

}  // namespace filigree

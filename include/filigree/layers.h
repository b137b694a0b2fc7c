// Layers that models are made of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "filigree/taps.h"
#include "filigree/tensor.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Normalisation layers with their taps: hook_scale (the denominator, [..., 1]) and hook_normalized
// (the result: what the layers behind the norm read, its weight and bias applied; or before these,
// see tap_before_gain). Where there is no norm the value passes as it is, and there are no taps.

enum class NormKind {
  kLayer,  // by the standard deviation, around the mean
  kRms,    // by the root mean square
  kNone,   // no norm at this place
};

struct NormWeights {
  Variable weight;
  Variable bias;  // undefined: none
  float epsilon = 1e-5f;
  NormKind kind = NormKind::kLayer;
  bool around_one = false;  // the weight says how far the gain is from 1
  bool tap_before_gain = false;  // hook_normalized is before weight and bias
  // Of x [..., heads, D]: so many heads are normalised each by itself, with D weights of its own
  // each, side by side in `weight`. 0: the last axis is as long as the weight.
  std::int64_t heads = 0;
  std::vector<Variable> by_head = {};  // the same where each head's are a parameter of their own
  // What hook_normalized is multiplied with on its way to what reads it (a scale of the logits).
  float factor = 1.0f;

  bool on() const { return kind != NormKind::kNone; }
  bool has_weights() const { return weight.defined() || !by_head.empty(); }
  // What the normalised values are multiplied with, [weights] or [heads, D], the factor included.
  // Analyses of weights read this one.
  Variable gain() const;

  // Whether the mean is taken off: then nothing behind the norm sees the mean of its input, and
  // analyses of weights may take it off the weights too.
  bool centres() const { return kind == NormKind::kLayer; }
};

inline const NormWeights kNoNorm = {.weight = {}, .bias = {}, .kind = NormKind::kNone};

Variable normalise(const Variable& x, const NormWeights& weights, const TapScope& tap);

// -------------------------------------------------------------------------------------------------
// The cosines and sines of rotary positions (ops/rotary), computed once a position.

// How angles are made smaller for contexts that are longer than those first trained on.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,  // all by the factor
    // Those that turn slowly by the factor, those that turn fast not at all, and between the two by
    // something between; slow and fast by how often `original_context` positions turn them.
    kLlama3,
    // The same, where what lies between goes by the number of the pair (Peng et al. 2023).
    kYarn,
    // A base that grows with the length of a run beyond `original_context`, by the factor.
    kDynamic,
    // Each pair by a number of its own, `near`, or `far` in runs longer than `original_context`.
    kLongRope,
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  // Of kLlama3 and kYarn: turns in the original context.
  double low_frequency = 1.0, high_frequency = 4.0;
  double original_context = 0.0;
  bool whole_pairs = true;  // of kYarn: the bounds of what lies between are whole numbers of pairs
  double amplitude = 1.0;   // what cosines and sines are multiplied with
  std::vector<double> near = {}, far = {};  // of kLongRope, one a pair

  // Whether the angles of a run of more than `original_context` positions are others.
  bool by_length() const { return kind == Kind::kDynamic || kind == Kind::kLongRope; }
  // Whether runs of so many positions turn them by the same angles.
  bool same_angles(std::int64_t length, std::int64_t other) const;

  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

// Angles that a step of one position turns the pairs of `width` elements by: base^(-2 i / width),
// scaled as for a run of so many positions. An odd width has a pair for its last element, as in
// transformers.
std::vector<double> rotary_steps(std::int64_t width, double base, const RotaryScaling& scaling = {},
                                 std::int64_t length = 0);

class RotaryTable {
 public:
  RotaryTable(std::int64_t width, double base, RotaryScaling scaling = {})
      : width_(width), base_(base), scaling_(std::move(scaling)) {}

  struct Part {
    Tensor cos, sin;  // [count, pairs], f32
  };
  // Of the positions from `first` on, in a run of `length` positions (-1: that ends with them). The
  // table grows as far as it is asked for; several threads may ask at once.
  Part at(std::int64_t first, std::int64_t count, DeviceKind device,
          std::int64_t length = -1) const;

 private:
  Part computed(std::int64_t first, std::int64_t count, std::int64_t length) const;

  std::int64_t width_;
  double base_;
  RotaryScaling scaling_;
  mutable std::mutex mutex_;
  mutable std::array<Part, 2> tables_;  // by device
  // The last that was asked for whose angles go by the length of the run, which all layers share.
  struct Long {
    std::int64_t first = 0, count = 0, length = 0;
    Part part = {};
  };
  mutable std::array<Long, 2> long_;
};

// -------------------------------------------------------------------------------------------------
// Keys and values of the positions a model has already seen, so that generation computes each
// position once.

class KeyValueCache {
 public:
  // Memory for `capacity` positions in the layers from `first_layer` on; throws Error when an
  // extent is not positive.
  KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t capacity,
                std::int64_t key_heads, std::int64_t head_width,
                DeviceKind device = DeviceKind::kCpu, DType dtype = DType::kF32,
                std::int64_t first_layer = 0);

  std::int64_t length() const { return length_; }  // positions that every layer holds
  std::int64_t capacity() const { return capacity_; }
  std::int64_t batch() const { return batch_; }
  void clear() { length_ = longest_run_ = 0; }
  // Forgets all but the first `length` positions.
  void truncate(std::int64_t length);

  // Puts k and v [B, T, G, D] of one layer behind the positions already held, from either device.
  // Throws Error when they do not fit.
  void append(std::int64_t layer, const Tensor& k, const Tensor& v);
  // Counts the T positions appended by every layer; called once a forward pass. They are of a run
  // of `length` positions (-1: that ends with them).
  void advance(std::int64_t positions, std::int64_t length = -1);
  // Positions of the longest run that any of those it holds were computed in.
  std::int64_t longest_run() const { return longest_run_; }

  const Tensor& keys(std::int64_t layer) const { return keys_[slot(layer)]; }
  const Tensor& values(std::int64_t layer) const { return values_[slot(layer)]; }

 private:
  std::size_t slot(std::int64_t layer) const {
    return static_cast<std::size_t>(layer - first_layer_);
  }

  std::int64_t first_layer_;
  std::int64_t batch_, capacity_, heads_, width_;
  std::int64_t length_ = 0, longest_run_ = 0;
  std::vector<Tensor> keys_, values_;  // [B, capacity, G, D] a layer
};

// -------------------------------------------------------------------------------------------------
// Low-rank adaptation of linear layers (LoRA, Hu et al. 2021):
//
//   y = x W + b + (alpha / rank) (x A) B        A [in, rank] "down", B [rank, out] "up"
//
// W is frozen and A and B are trained. The product A B is never formed while training; merging adds
// it to W once.

struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16.0;

  friend bool operator==(const LoraOptions&, const LoraOptions&) = default;
};

struct LoraAdapter {
  Variable down, up;   // undefined: no adapter
  float scale = 0.0f;  // alpha / rank

  bool on() const { return down.defined(); }
};

// Throws Error unless the rank is at least 1 and alpha finite and positive.
void check_lora(const LoraOptions& options);

// An adapter for the outputs that `w` chooses. A is uniform within 1 / sqrt(in), as the authors'
// code draws it, and B zero, so that the layer's function does not change. Throws Error for options
// that make no sense or a rank above the layer's smaller side.
LoraAdapter make_lora(const LinearWeight& w, const LoraOptions& options, std::uint64_t seed,
                      std::uint64_t stream);

// The layer with its adapter; the plain layer when there is none.
Variable linear(const Variable& x, const LinearWeight& w, const LoraAdapter& adapter);

// Adds the adapter's product to the weight, which is f32 then. Memory that is read-only or that
// another tensor shares is copied first.
void merge_lora(const LinearWeight& w, const LoraAdapter& adapter);

// -------------------------------------------------------------------------------------------------
// The perceptron of a block,
//
//   plain   f(x W_in) W_out
//   gated   (f(x W_gate) * x W_in) W_out,
//
// with taps hook_pre and hook_post before and after f, and in a gated one hook_pre_linear, what the
// gate is multiplied with; hook_post is then the product. SoLU has x softmax(x) over the hidden
// values for f(x), and may be followed by a layer norm: hook_mid is then before it, hook_post behind
// it, and the norm has its own taps inside "ln".

//
// A mixture of experts has several gated perceptrons in its place, of which a router chooses
// `per_token` for each token:
//
//   weights = softmax(x W_router)     gates = the largest weights, the others 0     sum gate expert(x)
//
// with taps hook_router_logits, hook_expert_weights and hook_expert_gates, [..., experts], and
// hook_expert_out, [..., experts, width], what each expert adds. Experts whose gate is 0 at a token
// are not computed there, unless a tap asks for what they would do.

struct ExpertWeights {
  LinearWeight gate, in;  // width -> hidden
  LinearWeight out;       // hidden -> width
};

struct MlpWeights {
  LinearWeight in;         // width -> hidden
  LinearWeight out;        // hidden -> width
  LinearWeight gate = {};  // width -> hidden; without a weight the MLP is plain
  Activation activation = Activation::kGeluNew;
  bool solu = false;            // in place of the activation
  NormWeights norm = kNoNorm;   // behind SoLU
  Variable product_bias = {};   // [hidden], added to the product of a gated MLP; or undefined
  LinearWeight router = {};     // width -> experts
  std::vector<ExpertWeights> experts = {};  // empty: no mixture
  std::int64_t per_token = 0;
  bool gates_sum_to_one = false;  // those that are chosen, by division

  // A block of attention only has none.
  bool on() const { return out.weight.defined() || !experts.empty(); }
};

Variable mlp(const Variable& x, const MlpWeights& weights, const TapScope& tap);

// -------------------------------------------------------------------------------------------------
// The attention layer of a block: projections, heads, output, with the taps hook_q, hook_k, hook_v
// ([B, T, heads, D]), where positions are rotary hook_rot_q and hook_rot_k (the same, turned),
// hook_attn_scores, hook_pattern ([B, H, T, T]), hook_z ([B, T, H, D]) and
// hook_result ([B, T, H, width], each head's own output). Where queries and keys are normalised
// q_norm and k_norm have the taps of a norm; hook_q and hook_k are before it. With a
// gate the pattern is the gated one and hook_gate is the mask of open gates ([B, H, T, T], 0 or 1).

// Adapters of the projections, each on its own also where a fused matrix holds several of them.
struct AttentionAdapters {
  LoraAdapter q, k, v, o;
};

struct AttentionWeights {
  LinearWeight q, k, v;  // width -> heads * D
  LinearWeight o;        // heads * D -> width
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_width = 0;
  float scale = 0.0f;   // of the scores; 0: 1 / sqrt(D)
  ScoreMask mask = {};  // window and soft cap of the scores
  float clip = 0.0f;    // bound of the elements of q, k and v as projected; 0: none
  // Of queries and keys before they are turned: of each head where the weight is [D], of all heads
  // of a token together where it is [heads D] (or each, NormWeights::heads). Without a weight there
  // are none.
  NormWeights q_norm = {}, k_norm = {};
  std::shared_ptr<const RotaryTable> rotary = {};  // null: positions turn nothing
  AttentionAdapters lora = {};
};

// What the projections read, normalised: the stream [B, T, width] that all heads share, or [B, T,
// heads, width] with an input of its own for each head of q, or key head of k and v
// (nn/branch_inputs.h).
struct AttentionInputs {
  Variable shared;   // not read where q, k and v are all defined
  Variable q, k, v;  // undefined: the shared stream
  // [B, T, width], added to what queries and keys read, and values do not; or undefined.
  Variable positions;

  AttentionInputs() = default;
  AttentionInputs(Variable x)  // NOLINT(google-explicit-constructor)
      : shared(std::move(x)) {}
};

// What a gated layer reports beside its output; both are [B, H].
struct GateReport {
  Variable expected;  // expected share of open edges, differentiable
  Tensor active;      // share of edges that were open
};

// -> [B, T, width]. With a cache, which holds keys as the scores read them, the T positions follow
// those it holds; a run with a cache is not differentiated, and scores and patterns are then [B, H,
// T, all positions]. `gate` may be null (ordinary attention), and `report` too. With `queries` only
// the last so many positions attend, and the result is [B, queries, width].
Variable self_attention(const AttentionInputs& x, const AttentionWeights& weights,
                        const TapScope& tap, KeyValueCache* cache = nullptr, std::int64_t layer = 0,
                        const GateOptions* gate = nullptr, GateReport* report = nullptr,
                        std::int64_t queries = -1);

}  // namespace filigree

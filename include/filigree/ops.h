// Differentiable operations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "filigree/activation.h"
#include "filigree/autograd.h"
#include "filigree/gate_noise.h"
#include "filigree/names.h"
#include "filigree/tensor.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The nonlinear functions of MLPs (filigree/activation.h), alone and as a gate.

// f of each element.
Variable activate(const Variable& x, Activation f);

// f(gate) * up, element by element: what a gated MLP makes of its two projections. Gradients flow
// to both. Throws Error when their shapes differ.
Variable gated_product(const Variable& gate, const Variable& up, Activation f);

// For operations that compute f themselves: grad * f'(x).
Tensor activation_gradient(Activation f, const Tensor& x, const Tensor& grad);

// -------------------------------------------------------------------------------------------------
// Elementwise operations. The binary ones broadcast as NumPy does: shapes are aligned at their last
// axis and an extent of 1 (or a missing one) repeats. Gradients of a repeated operand are summed.
// On the GPU f32 beside bf16 (a parameter beside an activation) gives bf16.

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);

Variable scale(const Variable& x, float factor);
Variable shift(const Variable& x, float offset);
// Within [-bound, bound]; what lies outside has no gradient.
Variable clamp(const Variable& x, float bound);
// bound * tanh(x / bound), the soft form of it.
Variable soft_cap(const Variable& x, float bound);

Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable square(const Variable& x);
Variable tanh(const Variable& x);

// The shape of a (op) b; throws Error when an extent neither agrees nor is 1.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

// -------------------------------------------------------------------------------------------------
// Reductions over one axis or over everything.

// `keep` leaves the axis with extent 1; otherwise it is removed. Negative axes count from the end.
Variable sum(const Variable& x, int axis, bool keep = false);
Variable mean(const Variable& x, int axis, bool keep = false);
// The gradient of a maximum goes to its first occurrence.
Variable maximum(const Variable& x, int axis, bool keep = false);

// Over all elements; the result is one number.
Variable sum_all(const Variable& x);
Variable mean_all(const Variable& x);

// Index of the first largest element along the last axis: i32 on the same device, the axis removed.
Tensor argmax(const Tensor& x);

// -------------------------------------------------------------------------------------------------
// Operations that only move or rename elements.

Variable reshape(const Variable& x, const Shape& shape);
// Elements [begin, end) of an axis.
Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end);
// Joins along an axis; all other extents must agree.
Variable concat(const std::vector<Variable>& parts, int axis);
// Exchanges two axes.
Variable transpose(const Variable& x, int axis_a, int axis_b);
// The same values on another device or in another element type; the variable itself when it is so
// already. The gradient goes back the same way.
Variable placed(const Variable& x, DeviceKind device, DType dtype = DType::kF32);

// -------------------------------------------------------------------------------------------------
// Matrix product of Variables.

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// C[..., M, N] = A[..., M, K] B[..., K, N], with either factor stored transposed. Leading axes must
// be equal in both, or B has rank 2 and serves every A. Throws Error for shapes that do not fit.
Variable matmul(const Variable& a, const Variable& b, MatmulOptions options = {});

// -------------------------------------------------------------------------------------------------
// The linear layer y = x W + b, optionally followed by an activation in the same pass, and two of
// them: one after the other or summed.

// A weight matrix as a linear layer reads it. The whole of a [in, out] matrix by default; with
// `out_in` the storage is [out, in] (as torch.nn.Linear keeps it); `begin` and `count` choose a
// range of the outputs, so that a layer can read its part of a fused matrix without a copy.
struct LinearWeight {
  Variable weight;
  Variable bias;  // [all outputs] or undefined
  bool out_in = false;
  std::int64_t begin = 0;
  std::int64_t count = -1;  // -1: all

  std::int64_t inputs() const { return weight.size(out_in ? 1 : 0); }
  std::int64_t outputs() const { return count >= 0 ? count : weight.size(out_in ? 0 : 1); }
};

// x [..., in] -> [..., out]. Gradients flow to x, weight and bias. With an activation,
// `pre_activation` receives the value before it (a constant) when not null. Throws Error for shapes
// that do not fit.
Variable linear(const Variable& x, const LinearWeight& w, Activation f = Activation::kNone,
                Tensor* pre_activation = nullptr);

// f(x W + b) U + c: two layers whose hidden values nobody else reads, so that the gradient of the
// activation is formed in a product. Throws Error for shapes that do not fit.
Variable feed_forward(const Variable& x, const LinearWeight& in, const LinearWeight& out,
                      Activation f);

// x W + b + h U + c as one result: x [..., in] and h [..., rank] share their leading axes, and w
// and u have equally many outputs. The sum is formed in the products, so that no summand takes
// memory of its own. Throws Error for shapes that do not fit.
Variable linear_sum(const Variable& x, const LinearWeight& w, const Variable& h,
                    const LinearWeight& u);

// -------------------------------------------------------------------------------------------------
// Rows of a table by index: token embeddings, and picking positions out of a batch.

// table [V, d], ids i32 [...] -> [..., d]. Throws Error for an id outside [0, V), naming it and its
// place. The gradient adds the rows of equal ids in the order they occur. The ids lie on the CPU,
// whatever the table's device; the rows are f32 or, on the GPU, of another `dtype`.
Variable embedding(const Variable& table, const Tensor& ids, DType dtype = DType::kF32);

// Rows of several tables of one shape, each table's times its factor: [tables, ids, d], not
// differentiated. Tables are f32; an id of -1 is a row of zeros. The ids lie where the tables do
// and are not checked there.
Tensor scaled_rows(std::span<const Tensor> tables, const Tensor& ids,
                   std::span<const float> factors, DType dtype = DType::kF32);

// -------------------------------------------------------------------------------------------------
// Normalisation over the last axis:
//   layer_norm   y = (x - mean) / sqrt(variance + epsilon) * weight + bias
//   rms_norm     y = x / sqrt(mean of x^2 + epsilon) * weight

// x [..., d], weight [d], bias [d] or undefined; gradients flow to all of them. Throws Error for
// other shapes.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, float epsilon);

// x [..., d], weight [d]; gradients flow to both. Throws Error for other shapes.
Variable rms_norm(const Variable& x, const Variable& weight, float epsilon);

// -------------------------------------------------------------------------------------------------
// Softmax and its logarithm over the last axis. Minus infinity gives exactly zero; a row that is
// all minus infinity is an Error-free row of zeros in softmax, so masked rows stay defined.

Variable softmax(const Variable& x);
Variable log_softmax(const Variable& x);

// -------------------------------------------------------------------------------------------------
// Rotary positions (Su et al. 2021): pairs of a head's elements turned by an angle that grows with
// the position, so that scores depend on distances.

// x [B, T, H, D]; cos and sin [T, R] in f32, of each position's angles, on x's device, with
// 2 R <= D. Pair i is elements i and i + R of each head,
//
//   y[i] = x[i] cos[i] - x[i + R] sin[i]      y[i + R] = x[i + R] cos[i] + x[i] sin[i],
//
// as Llama and GPT-NeoX store them; elements from 2 R on stay as they are. The gradient flows to
// x. Throws Error for shapes that do not fit.
Variable rotary(const Variable& x, const Tensor& cos, const Tensor& sin);

// -------------------------------------------------------------------------------------------------
// Attention, fused and in parts.
//
// q is [B, Tq, H, D]; k and v are [B, Tk, G, D] with G dividing H: query head h reads key head
// h / (H / G). Query i stands at position Tk - Tq + i and sees the keys up to its own position
// (causal), with a window the last so many of them, or all keys (bidirectional). With a soft cap c
// the scores are c tanh(s / c).
//
//   s_ij = scale * q_i . k_j      A_ij = exp(s_ij) / sum_{j' <= i} exp(s_ij')      z_i = sum_j A_ij
//   v_j
//
// The fused form works on blocks of queries and keeps only z and the row's log-sum-exp, so memory
// grows with T; maps are written when asked for. The parts form is for analyses that change or
// differentiate scores and patterns: it holds them as [B, H, Tq, Tk] Variables.

// What becomes of scores, and which keys a query sees.
struct ScoreMask {
  std::int64_t window = 0;     // keys that a query sees, its own the last; 0: all
  float soft_cap = 0.0f;       // 0: none
  bool bidirectional = false;  // queries see the keys behind them too; takes no window

  bool on() const { return window > 0 || soft_cap > 0.0f || bidirectional; }
};

struct AttentionOptions {
  float scale = 0.0f;      // 0: 1 / sqrt(D)
  std::int64_t keys = -1;  // use only the first `keys` of k and v (a cache); -1: all
  ScoreMask mask = {};
  Tensor* pattern = nullptr;      // receives A [B, H, Tq, Tk], zero above the diagonal
  Tensor* log_sum_exp = nullptr;  // receives [B, H, Tq]
};

// -> z [B, Tq, H, D]. Gradients flow to q, k and v. Throws Error for shapes that do not fit.
Variable attention(const Variable& q, const Variable& k, const Variable& v,
                   AttentionOptions options = {});

// q, k and v side by side, [B, T, (H + 2 G) D], as one product with a fused weight gives them.
struct PackedHeads {
  Variable packed;
  std::int64_t heads = 0, key_heads = 0;
};

// Whether there are kernels that read a tensor of that shape so: on the GPU in bf16, for most
// shapes. `like` tells device and element type.
bool attention_reads_packed(const Tensor& like, const Shape& packed, std::int64_t heads,
                            std::int64_t key_heads);
// The same as on its parts. Throws Error where they are not read so.
Variable attention(const PackedHeads& heads, float scale = 0.0f);

// s [B, H, Tq, Tk], minus infinity where a query does not look.
Variable attention_scores(const Variable& q, const Variable& k, float scale = 0.0f,
                          const ScoreMask& mask = {});

// z_i = sum_j pattern_ij v_j, for any pattern.
Variable attention_mix(const Variable& pattern, const Variable& v);

// -------------------------------------------------------------------------------------------------
// Attention whose edges are switched by gates; with every gate open it is ordinary attention.
//
//   s_ij = scale * q_i . k_j           A_ij = softmax of s over all keys that query i sees
//   gate logit g_ij = s_ij + b_h       z_i = sum_j A_ij e_ij v_j          (no renormalisation)
//
//   evaluation:  e_ij = 1[g_ij > 0]
//   training:    e_ij = 1[g_ij + noise > 0], noise = log u - log(1 - u), u uniform (gate_noise.h)
//
//   expected edges of a head: p = sum_{j seen} sigmoid(g_ij) / (number of pairs)
//
// The hard gate's gradient is that of r = sigmoid(g + noise) (straight-through):
//
//   dL/dg_ij = A_ij r (1 - r) (G_i . v_j) + dL/dp sigmoid(g) (1 - sigmoid(g)) / pairs
//   dL/ds_ij = A_ij (e_ij G_i . v_j - G_i . z_i) + dL/dg_ij        dL/dv_j = sum_i A_ij e_ij G_i
//
// Scores and noise are computed again in the backward pass; only z and the row log-sum-exp are
// kept.

struct GateOptions {
  Variable bias;  // [1] for all heads, or [H]
  bool sample = false;
  GateNoise noise = {};  // where the samples come from
  Tensor uniform;        // [B, H, Tq, Tk] in (0, 1): use these instead
};

struct GatedAttentionOptions {
  GateOptions gate = {};
  float scale = 0.0f;         // 0: 1 / sqrt(D)
  std::int64_t keys = -1;     // use only the first `keys` of k and v (a cache); -1: all
  ScoreMask score_mask = {};  // the share of edges is of those inside the window
  Tensor* pattern = nullptr;  // receives A e [B, H, Tq, Tk]
  Tensor* mask = nullptr;     // receives e as 0 and 1, likewise
};

struct GatedAttention {
  Variable z;         // [B, Tq, H, D]
  Variable expected;  // [B, H]: p, differentiable
  Tensor active;      // [B, H]: open gates / pairs of a query and a key that it sees
};

// Shapes as in attention.h; gradients flow to q, k, v and the bias. Throws Error for shapes that do
// not fit.
GatedAttention gated_attention(const Variable& q, const Variable& k, const Variable& v,
                               const GatedAttentionOptions& options);
// The same of heads side by side, without a cache and without maps.
GatedAttention gated_attention(const PackedHeads& heads, const GatedAttentionOptions& options);

// The gates of given scores [B, H, Tq, Tk] (minus infinity is closed) as 0 and 1, with the
// straight-through gradient: the part that analyses put between scores and pattern.
Variable gate_mask(const Variable& scores, const GateOptions& options);

// -------------------------------------------------------------------------------------------------
// Cross entropy of next-token predictions.

// Targets with this id take no part in the loss (the convention of Hugging Face labels).
inline constexpr std::int32_t kIgnoredTarget = -100;

// logits [..., V], targets i32 of the leading shape -> mean of -log softmax(logits)[target] over
// the targets that are not ignored. With `per_token`, that tensor receives each position's loss (0
// where ignored). Throws Error for a target outside [0, V) or when all are ignored.
Variable cross_entropy(const Variable& logits, const Tensor& targets, Tensor* per_token = nullptr);

// -------------------------------------------------------------------------------------------------
// Kullback-Leibler divergence between next-token predictions, the loss of distillation.

// Mean over positions of KL(softmax(teacher) || softmax(student)); both are logits [..., V]. The
// gradient flows to the student alone: (softmax(student) - softmax(teacher)) / positions. With
// `targets` (i32, one a position) the positions that cross_entropy ignores do not count here
// either. Throws Error when the shapes differ or no position counts.
Variable kl_divergence(const Tensor& teacher, const Variable& student, const Tensor& targets = {});

// The divergence of every row: teacher [rows, V], student [n rows, V] -> f32 [n rows], where a
// student's row is compared with the teacher's of the same index modulo `rows`. Not differentiable.
// Throws Error when the shapes do not fit.
Tensor kl_of_rows(const Tensor& teacher, const Tensor& student);

// -------------------------------------------------------------------------------------------------
// Rows of numbers most of which are zero: the features of a transcoder that are active at each
// token. Operations on them cost what is active, not what there is.

// The same entries in the order of their columns, for sums over the rows of a column.
struct CodeByFeature {
  Tensor begin;  // i32 [features + 1]
  Tensor row;    // i32 [entries], ascending within a feature
  Tensor entry;  // i32 [entries]: where it is in the code

  bool defined() const { return begin.defined(); }
};

struct SparseCode {
  std::int64_t rows = 0, features = 0;
  Tensor begin;    // i32 [rows + 1]: the entries of row r are begin[r] ... begin[r + 1] - 1
  Tensor feature;  // i32 [entries], ascending within a row
  Variable value;  // f32 [entries], on the device of the others
  CodeByFeature by_feature;  // made where gradients will be wanted

  // Of codes that were made without asking the GPU how many there are: the room for them. Zeros of
  // feature 0 then follow the last row, and by_feature leaves them out.
  std::int64_t entries() const { return feature.elements(); }
};

// A code of given entries. Throws Error unless begin rises from 0 to the number of entries and
// features are ascending in each row and below `features`.
SparseCode make_code(std::int64_t features, const std::vector<std::int32_t>& begin,
                     const std::vector<std::int32_t>& feature, const Variable& value);

// The entries by feature: those that the code has, or made now.
CodeByFeature entries_by_feature(const SparseCode& code);

// How often features are active of late, f32 [codes, features] on the codes' device:
// density = keep * density + (1 - keep) * (share of the rows where the value is above 0).
// Returns i32 [codes, 2] there: values above 0, and densities that are now below `dead`.
Tensor update_density(std::span<const SparseCode> codes, float keep, float dead, Tensor& density);

// As a matrix [rows, features] with zeros, on the CPU: for small ones and for tests.
Tensor dense_code(const SparseCode& code);

// tanh(c a_p N_i) for every entry p of feature i, [entries]: how far each counts as active.
// `norms` is [features]. Gradients flow to the values and the norms.
Variable saturated_activity(const SparseCode& code, const Variable& norms, float c);

// -------------------------------------------------------------------------------------------------
// The features of each row that are active: h = x W^T + b, of which few pass.
//
//   threshold    a = h where h > theta, else 0; theta is 0 without one (ReLU)
//   top-k        the k largest of each row, those above 0
//   batch-top-k  the k * rows largest of all, those above 0
//
// Of values that are equal all pass or none; of batch-top-k none where all of them would make it
// more than (k + 1) * rows.
//
// Gradients flow from a to x, W and b where a is not 0, and with a bandwidth e to the threshold as
// if the step were a slope of width e (straight-through):
//
//   da/dtheta = -(theta / e) 1[|h - theta| < e / 2]
//
// Only what passes is kept (with a bandwidth also what might have, where gradients are wanted), so
// that everything behind this operation, and its own backward pass, costs what is active.

enum class Selection { kThreshold, kTopK, kBatchTopK };
template <>
inline constexpr auto kNames<Selection> =
    std::to_array<Named<Selection>>({{Selection::kThreshold, "threshold"},
                                     {Selection::kTopK, "top-k"},
                                     {Selection::kBatchTopK, "batch-top-k"}});

struct SparseEncodeOptions {
  Selection selection = Selection::kThreshold;
  std::int64_t k = 0;             // of the last two
  float bandwidth = 0.0f;         // e; 0: the threshold gets no gradient through a
  DType precision = DType::kF32;  // of the weight that the product reads
  // Where several processes have some of the features each: adds up numbers over them, in place.
  // Top-k of such is found on the CPU only.
  std::function<void(std::span<double>)> sum = {};
  int process = 0, processes = 1;
};

struct EncoderWeights {
  Variable weight;     // [features, width]
  Variable bias;       // [features]
  Variable threshold;  // [features], not negative, or undefined
};

struct Encoded {
  SparseCode code;
  // [features]: the sum over the rows of max(theta - h, 0), if it was asked for. Differentiable.
  Variable below;
  float bound = 0.0f;  // of batch-top-k: what passed is above it
};

// x [rows, width]. Throws Error for shapes that do not fit, or options that make no sense.
Encoded sparse_encode(const Variable& x, const EncoderWeights& encoder,
                      const SparseEncodeOptions& options, bool with_below = false);

// The same of several layers, x [layers, rows, width], each with weights of its own. Where
// batch-top-k is recorded on a GPU nothing waits for it: codes have room for more entries than
// there are, and the bound is not told. Otherwise a GPU is waited for once for as many layers as
// have their h in 1 GiB.
std::vector<Encoded> sparse_encode_layers(const Tensor& x, std::span<const EncoderWeights> encoders,
                                          const SparseEncodeOptions& options,
                                          bool with_below = false);

// h itself, f32 [rows, features] on x's device; not differentiated.
Tensor pre_activations(const Tensor& x, const EncoderWeights& encoder,
                       DType precision = DType::kF32);

// -------------------------------------------------------------------------------------------------
// The arithmetic of optimisers, on whole tensors in place. filigree/train.h keeps the state.

struct AdamWStep {
  float learning_rate = 0.0f;
  float beta1 = 0.9f, beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;  // clipping and accumulation: g is multiplied by it first
  std::int64_t step = 1;        // counted from 1, for the bias corrections
};

// Decoupled weight decay (Loshchilov & Hutter):
//   w *= 1 - lr * decay      m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//   w -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
struct AdamWUpdate {
  AdamWStep step = {};
  Tensor gradient;
  Tensor weight, first_moment, second_moment;  // changed
  Tensor bf16_copy = {};  // on the GPU: receives the new weight rounded; may be undefined
};

// The tensors of an update have one shape and device. Throws Error otherwise.
void adamw_steps(std::vector<AdamWUpdate> updates);

// Square root of the sum of squares over all tensors, in double precision, the same for every
// thread count. All lie on one device.
double global_norm(const std::vector<Tensor>& tensors);

}  // namespace filigree

// Arguments of the attention kernels; layouts as in filigree/ops.h, log_sum_exp is [B, H, Tq]. T is
// the element type of q, k, v, z and their gradients; everything else is f32.
#pragma once

#include <cstdint>

#include "filigree/gate_noise.h"

namespace filigree {

struct AttentionShape {
  std::int64_t B = 0, Tq = 0, Tk = 0, H = 0, G = 0, D = 0;
  std::int64_t kv_batch = 0;  // elements from one batch entry of k and v to the next
  // Elements from one token to the next. Others than H D and G D, where q, k and v lie side by side
  // in one tensor, are read only by the kernels on tensor cores (reads_packed).
  std::int64_t q_token = 0, kv_token = 0;
  float scale = 1.0f;
  std::int64_t window = 0;     // keys that a query sees, its own the last; 0: all
  float soft_cap = 0.0f;       // scores become soft_cap tanh(score / soft_cap); 0: as they are
  bool bidirectional = false;  // queries see the keys behind them too

  bool plain() const { return window == 0 && soft_cap == 0.0f && !bidirectional; }
};

// The first key that the query at `position` sees.
FILIGREE_HOST_DEVICE constexpr std::int64_t first_key(const AttentionShape& s,
                                                      std::int64_t position) {
  return s.window > 0 && position >= s.window ? position - s.window + 1 : 0;
}

// One behind the last key that it sees.
FILIGREE_HOST_DEVICE constexpr std::int64_t end_key(const AttentionShape& s,
                                                    std::int64_t position) {
  return s.bidirectional ? s.Tk : position + 1;
}

// Edges of one head: pairs of a query and a key that it sees.
constexpr double seen_pairs(const AttentionShape& s) {
  double pairs = 0.0;
  for (std::int64_t i = 0; i < s.Tq; ++i) {
    const std::int64_t position = s.Tk - s.Tq + i;
    pairs += static_cast<double>(end_key(s, position) - first_key(s, position));
  }
  return pairs;
}

// The gate of each edge, as filigree/ops.h defines it. Off when bias is null.
struct GateArgs {
  const float* bias = nullptr;  // [H]
  bool sample = false;
  GateNoise noise = {};
  const float* uniform = nullptr;  // [B, H, Tq, Tk]: in place of the counters' noise
  float* mask = nullptr;           // [B, H, Tq, Tk], written; or null
  float* expected_rows = nullptr;  // [B, H, Tq]: sum over keys of sigmoid(gate logit)
  float* active_rows = nullptr;    // [B, H, Tq]: open gates
};

template <typename T = float>
struct AttentionArgs {
  AttentionShape shape;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  T* z = nullptr;
  T* z_error = nullptr;  // or null; as z: what rounding took from it. On the GPU only
  float* log_sum_exp = nullptr;
  float* pattern = nullptr;  // or null; with a gate, the gated pattern
  GateArgs gate = {};
};

template <typename T = float>
struct AttentionGradArgs {
  AttentionShape shape;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const float* log_sum_exp = nullptr;
  const T* dz = nullptr;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
  GateArgs gate = {};
  const float* dexpected = nullptr;  // [B, H]: gradient of sum of sigmoid(gate logit); with a gate
  float* dbias = nullptr;            // [B, H], written with a gate
  const T* z = nullptr;        // the forward result, for kernels that use it; with a gate A e v
  const T* z_error = nullptr;  // what rounding took from z, or null
};

// The gates of given scores, and their gradient.
template <typename T = float>
struct GateMaskArgs {
  std::int64_t B = 0, H = 0, Tq = 0, Tk = 0;
  const T* scores = nullptr;
  GateArgs gate = {};       // bias, sample, noise, uniform
  T* mask = nullptr;        // 0 or 1
  float* slopes = nullptr;  // r (1 - r), or null
};

namespace cpu {
void attention(const AttentionArgs<>& args);
void attention_grad(const AttentionGradArgs<>& args);

// Of products q . k as scores[B, H, Tq, Tk]: times the scale, capped, minus infinity where a query
// does not look.
void mask_scores(const AttentionShape& shape, float* scores);
// The gradient of these products, from that of the scores: zero where a query does not look.
// `scores` are those that mask_scores left; read with a cap only.
void mask_score_gradient(const AttentionShape& shape, const float* scores, const float* grad,
                         float* out);
void gate_mask(const GateMaskArgs<>& args);
}  // namespace cpu

namespace cuda {
// Whether q, k and v of T side by side can be read where they lie, forward and backward.
template <typename T>
bool reads_packed(const AttentionShape& shape);

template <typename T>
void attention(const AttentionArgs<T>& args);
template <typename T>
void attention_grad(const AttentionGradArgs<T>& args);

// As on the CPU.
template <typename T>
void mask_scores(const AttentionShape& shape, T* scores);
template <typename T>
void mask_score_gradient(const AttentionShape& shape, const T* scores, const T* grad, T* out);
template <typename T>
void gate_mask(const GateMaskArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

// Causal attention whose edges are switched by gates; with every gate open it is ordinary
// attention.
//
//   s_ij = scale * q_i . k_j           A_ij = softmax over all causal keys of s
//   gate logit g_ij = s_ij + b_h       z_i = sum_j A_ij e_ij v_j          (no renormalisation)
//
//   evaluation:  e_ij = 1[g_ij > 0]
//   training:    e_ij = 1[g_ij + noise > 0], noise = log u - log(1 - u), u uniform (gate_noise.h)
//
//   expected edges of a head: p = sum_{j <= i} sigmoid(g_ij) / (number of causal pairs)
//
// The hard gate's gradient is that of r = sigmoid(g + noise) (straight-through):
//
//   dL/dg_ij = A_ij r (1 - r) (G_i . v_j) + dL/dp sigmoid(g) (1 - sigmoid(g)) / pairs
//   dL/ds_ij = A_ij (e_ij G_i . v_j - G_i . z_i) + dL/dg_ij        dL/dv_j = sum_i A_ij e_ij G_i
//
// Scores and noise are computed again in the backward pass; only z and the row log-sum-exp are
// kept.
#pragma once

#include "autograd/variable.h"
#include "ops/attention/attention.h"
#include "ops/attention/gate_noise.h"

namespace filigree {

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
  Tensor active;      // [B, H]: open gates / causal pairs inside the window
};

// Shapes as in attention.h; gradients flow to q, k, v and the bias. Throws Error for shapes that do
// not fit.
GatedAttention gated_attention(const Variable& q, const Variable& k, const Variable& v,
                               const GatedAttentionOptions& options);
// The same of heads side by side (attention.h), without a cache and without maps.
GatedAttention gated_attention(const PackedHeads& heads, const GatedAttentionOptions& options);

// The gates of given scores [B, H, Tq, Tk] (minus infinity is closed) as 0 and 1, with the
// straight-through gradient: the part that analyses put between scores and pattern.
Variable gate_mask(const Variable& scores, const GateOptions& options);

}  // namespace filigree

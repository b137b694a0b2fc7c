// Causal attention, fused and in parts.
//
// q is [B, Tq, H, D]; k and v are [B, Tk, G, D] with G dividing H: query head h reads key head
// h / (H / G). Query i stands at position Tk - Tq + i and sees the keys up to its own position, or
// with a window the last so many of them. With a soft cap c the scores are c tanh(s / c).
//
//   s_ij = scale * q_i . k_j      A_ij = exp(s_ij) / sum_{j' <= i} exp(s_ij')      z_i = sum_j A_ij
//   v_j
//
// The fused form works on blocks of queries and keeps only z and the row's log-sum-exp, so memory
// grows with T; maps are written when asked for. The parts form is for analyses that change or
// differentiate scores and patterns: it holds them as [B, H, Tq, Tk] Variables.
#pragma once

#include <cstdint>

#include "autograd/variable.h"

namespace filigree {

// What becomes of scores beside the causal mask.
struct ScoreMask {
  std::int64_t window = 0;  // keys that a query sees, its own the last; 0: all
  float soft_cap = 0.0f;    // 0: none

  bool on() const { return window > 0 || soft_cap > 0.0f; }
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

}  // namespace filigree

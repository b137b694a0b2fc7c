// The attention layer of a block: projections, heads, output, with the taps hook_q, hook_k, hook_v
// ([B, T, heads, D]), where positions are rotary hook_rot_q and hook_rot_k (the same, turned),
// hook_attn_scores, hook_pattern ([B, H, T, T]), hook_z ([B, T, H, D]) and
// hook_result ([B, T, H, width], each head's own output). Where queries and keys are normalised
// q_norm and k_norm have the taps of a norm (nn/norm.h); hook_q and hook_k are before it. With a
// gate the pattern is the gated one and hook_gate is the mask of open gates ([B, H, T, T], 0 or 1).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "nn/kv_cache.h"
#include "nn/lora.h"
#include "nn/norm.h"
#include "nn/rotary_table.h"
#include "nn/taps.h"
#include "ops/attention/gated_attention.h"
#include "ops/linear/linear.h"

namespace filigree {

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
  // of a token together where it is [heads D]. Without a weight there are none.
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

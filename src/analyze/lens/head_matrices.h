// The weights of single heads as the residual stream sees them.
//
// A head reads the stream through its layer's norm and writes back to it. With the norm's gain
// (and, where it centres, its centring) folded into the matrices that read,
//
//   values written   x V O      "OV circuit", rank D, V [d, D], O [D, d]
//   scores           x Q K^T y  "QK circuit", rank D, Q and K [d, D]
//
// for a query x and a key y, up to the norm's scale and without biases. Gains of norms on queries,
// keys and behind the attention, in families that have them, are folded in too, their scales not.
// Rotations of positions come between Q and K and are left out; so are soft caps.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace filigree {

struct HeadMatrices {
  Tensor q, k, v;      // [d, D], what the norm does folded in
  Tensor o;            // [D, d]
  float scale = 1.0f;  // of the scores
};

// Heads that share a key-value head have equal k and v. Adapters are added in.
HeadMatrices head_matrices(const NormWeights& norm, const AttentionWeights& w, std::int64_t head,
                           const NormWeights& post_norm = kNoNorm);

// Every head, layer by layer.
std::vector<HeadMatrices> all_head_matrices(const Model& model);

// [V, d], the final norm folded in: a stream x has the logits W x, up to the norm's scale and
// without biases.
Tensor folded_unembedding(const Model& model);

}  // namespace filigree

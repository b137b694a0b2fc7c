// What the branches of a block read from the residual stream, before their normalisation, with
// TransformerLens's names: hook_q_input, hook_k_input, hook_v_input ([B, T, heads, width], each
// head's own copy; keys and values by key head) and hook_mlp_in ([B, T, width]).
//
// They are the ends of the edges of a circuit: to change one head's queries alone is to change its
// copy. Copies that nobody changes or differentiates are made only to be looked at, and the layer
// goes on from the shared stream.
#pragma once

#include "filigree/layers.h"
#include "filigree/taps.h"

namespace filigree {

// The normalised inputs of an attention layer. `block` is the scope of the block's taps. Throws
// Error when a tap inside ln1 is changed or differentiated while the heads have copies of their
// own, which it would miss.
AttentionInputs attention_inputs(const Variable& x, const NormWeights& ln1,
                                 const AttentionWeights& weights, const TapScope& block);

// The residual stream as the MLP's branch alone reads it.
Variable mlp_input(const Variable& x, const TapScope& block);

}  // namespace filigree

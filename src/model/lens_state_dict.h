// State dicts under TransformerLens's names as files have them: behind the prefixes of wrappers,
// and in the layouts of its first versions. Everything else sees names and shapes of today.
#pragma once

#include <string>
#include <vector>

#include "io/safetensors.h"

namespace filigree {

// Whether the tensors are a model under TransformerLens's names, perhaps behind one prefix that all
// of them have ("model.", "_orig_mod.", "module.").
bool has_transformer_lens_names(const std::vector<TensorView>& tensors);

// The same without the prefix, and with matrices turned that the first versions kept the other way
// round: W_E [d, V], W_Q, W_K, W_V [heads, d_head, d], W_O [d, heads d_head] or [heads, d, d_head],
// W_in [d_mlp, d], W_out [d, d_mlp], W_U [V, d]. Those are copies. Throws Error naming the tensor
// for layouts that are neither.
std::vector<TensorView> lens_tensors(const std::vector<TensorView>& tensors,
                                     const std::string& source);

}  // namespace filigree

// State dicts under TransformerLens's names: blocks.0.attn.W_Q [heads, width, head width] and so
// on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "io/safetensors.h"

namespace filigree {

// The shape that the tensors (lens_tensors()) have. Without settings (hooked_config()) those of a
// GPT-2 are one, and what they do not tell (activation, epsilon) is GPT-2's; all others are of the
// family hooked_transformer.
ModelConfig transformer_lens_config(const std::vector<TensorView>& tensors,
                                    const nlohmann::json& settings, const std::string& source);

// A model of the configuration with these weights. A vocabulary that is padded beyond the
// configuration's is cut; norms that are folded into what follows have a gain of 1; an output layer
// that is not the embedding is kept apart. Throws Error for tensors that are missing, have another
// shape or mean something that such a model does not have; masks are left out.
std::unique_ptr<Model> model_from_transformer_lens(const std::vector<TensorView>& tensors,
                                                   ModelConfig config, const std::string& source);

}  // namespace filigree

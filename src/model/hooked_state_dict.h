// Models of the family hooked_transformer from state dicts of TransformerLens, which have no
// config.json: shapes tell most, settings or defaults the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "io/safetensors.h"

namespace filigree {

// The configuration of the tensors (lens_tensors()): `settings`, a JSON object of TransformerLens's
// names or null, goes before what shapes tell; ModelConfig::assumed names what neither does. Throws
// Error for settings that the shapes contradict.
ModelConfig hooked_config(const std::vector<TensorView>& tensors, const nlohmann::json& settings,
                          const std::string& source);

// The model of such tensors. Biases that are not there are zero. Throws Error for tensors that are
// missing or of another shape, and for tensors that such a model does not have.
std::unique_ptr<Model> hooked_model(const std::vector<TensorView>& tensors,
                                    const ModelConfig& config, const std::string& source);

}  // namespace filigree

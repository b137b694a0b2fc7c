// The parameters of a checkpoint by their names in Hugging Face's folders, and their numbers in
// this program's order and in that of GGUF files.
#pragma once

#include <vector>

#include "io/checkpoint.h"
#include "model/family.h"

namespace filigree {

// Of a GGUF file the names and forms that its architecture gives them; tensors that the
// configuration was read from are left out.
std::vector<StoredParameter> parameters_of(const Checkpoint& checkpoint, const ModelConfig& config);

// The extents that a parameter of this form has in its file.
std::vector<std::int64_t> stored_shape(const ParameterSpec& spec, StoredForm form);

// A parameter as this program has it, from one with stored_shape(); and back.
Tensor from_stored(const ParameterSpec& spec, StoredForm form, const ModelConfig& config,
                   const Tensor& value);
Tensor to_stored(const ParameterSpec& spec, StoredForm form, const ModelConfig& config,
                 const Tensor& value);

}  // namespace filigree

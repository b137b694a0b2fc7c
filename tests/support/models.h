// Models of random weights, and tokens for them.
#pragma once

#include <cstdint>

#include "filigree/model.h"

namespace filigree {

// Random weights of 0.02 give flat maps; larger ones make every path matter. Norms and biases stay.
inline void enlarge_weights(const Model& model, float factor) {
  for (const NamedParameter& parameter : model.parameters()) {
    if (parameter.variable.shape().rank() != 2) continue;
    Tensor larger = parameter.variable.value().clone();  // what was loaded cannot be written to
    for (std::int64_t i = 0; i < larger.elements(); ++i) larger.mutable_f32()[i] *= factor;
    parameter.variable.mutable_value() = larger;
  }
}

// [B, T], each of 50 tokens in turn.
inline Tensor ids(std::int64_t B, std::int64_t T) {
  Tensor tensor = Tensor::empty({B, T}, DType::kI32);
  for (std::int64_t i = 0; i < B * T; ++i)
    tensor.mutable_i32()[i] = static_cast<std::int32_t>((i * 17 + 5) % 50);
  return tensor;
}

}  // namespace filigree

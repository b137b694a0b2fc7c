// A second model with the weights of a first, without reading them again.
#pragma once

#include <memory>

#include "filigree/model.h"

namespace filigree {

enum class CopiedWeights {
  kOwn,     // in memory of their own; those in a mapped file, which nobody can change, are shared
  kShared,  // the same memory: for models whose weights stay as they are, under adapters
};

// With the gate and the placement of `model`. Throws Error for a model with adapters.
std::unique_ptr<Model> copy_model(const Model& model, CopiedWeights weights = CopiedWeights::kOwn);

}  // namespace filigree

// A second model with the weights of a first, without reading them again.
#pragma once

#include <memory>

#include "filigree/model/model.h"

namespace filigree {

// With the gate and the placement of `model`, in memory of its own; weights in a mapped file, which
// nobody can change, are shared. Throws Error for a model with adapters.
std::unique_ptr<Model> copy_model(const Model& model);

}  // namespace filigree

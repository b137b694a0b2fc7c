// Models whose weights stay as they are, under adapters, in half the memory.
#pragma once

#include "filigree/model.h"

namespace filigree {

// As model.place(placement), with matrices in bf16 alone: rounded for good, without f32 values
// beside them. Vectors, adapters and gates keep f32. Such a model computes as one with both, cannot
// be trained but for adapters, and merging these makes the matrices that they are on f32 again.
// Throws Error unless the placement computes in bf16.
void place_rounded(Model& model, const Placement& placement);

}  // namespace filigree

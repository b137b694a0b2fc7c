// The sum of a whole f32 tensor times a factor, as losses need it: one number on the same device,
// in double precision, without waiting for the GPU.
#pragma once

#include "filigree/tensor.h"

namespace filigree {

Tensor total(const Tensor& values, double factor);

}  // namespace filigree

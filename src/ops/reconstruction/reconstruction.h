// How far what was written is from what should have been, of several layers at once.
#pragma once

#include "filigree/autograd.h"

namespace filigree {

struct Reconstruction {
  Variable error;     // factor * sum of the squares of the difference
  Tensor difference;  // written + bias - targets
  // f32 [2, layers] on their device: the sums of squares of each layer's difference, and of its
  // targets about their mean over the rows.
  Tensor squares;
};

// written and targets f32 [layers, rows, width], bias [layers, 1, width] or undefined. Gradients
// flow from the error to what was written and the bias. On the GPU it is one pass over each. Throws
// Error for shapes that do not fit.
Reconstruction reconstruction(const Variable& written, const Variable& bias, const Tensor& targets,
                              float factor);

}  // namespace filigree

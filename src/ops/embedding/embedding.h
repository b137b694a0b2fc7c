// Rows of a table by index: token embeddings, and picking positions out of a batch.
#pragma once

#include "filigree/autograd/variable.h"

namespace filigree {

// table [V, d], ids i32 [...] -> [..., d]. Throws Error for an id outside [0, V), naming it and its
// place. The gradient adds the rows of equal ids in the order they occur. The ids lie on the CPU,
// whatever the table's device; the rows are f32 or, on the GPU, of another `dtype`.
Variable embedding(const Variable& table, const Tensor& ids, DType dtype = DType::kF32);

}  // namespace filigree

// Rows of a table by index: token embeddings, and picking positions out of a batch.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// table [V, d], ids i32 [...] -> [..., d]. Throws Error for an id outside [0, V), naming it and its
// place. The gradient adds the rows of equal ids in the order they occur.
Variable embedding(const Variable& table, const Tensor& ids);

}  // namespace filigree

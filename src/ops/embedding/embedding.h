// Rows of a table by index: token embeddings, and picking positions out of a batch.
#pragma once

#include <span>

#include "autograd/variable.h"

namespace filigree {

// table [V, d], ids i32 [...] -> [..., d]. Throws Error for an id outside [0, V), naming it and its
// place. The gradient adds the rows of equal ids in the order they occur. The ids lie on the CPU,
// whatever the table's device; the rows are f32 or, on the GPU, of another `dtype`.
Variable embedding(const Variable& table, const Tensor& ids, DType dtype = DType::kF32);

// Rows of several tables of one shape, each table's times its factor: [tables, ids, d], not
// differentiated. Tables are f32; an id of -1 is a row of zeros. The ids lie where the tables do
// and are not checked there.
Tensor scaled_rows(std::span<const Tensor> tables, const Tensor& ids,
                   std::span<const float> factors, DType dtype = DType::kF32);

}  // namespace filigree

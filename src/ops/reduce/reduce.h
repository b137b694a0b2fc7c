// Reductions over one axis or over everything.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// `keep` leaves the axis with extent 1; otherwise it is removed. Negative axes count from the end.
Variable sum(const Variable& x, int axis, bool keep = false);
Variable mean(const Variable& x, int axis, bool keep = false);
// The gradient of a maximum goes to its first occurrence.
Variable maximum(const Variable& x, int axis, bool keep = false);

// Over all elements; the result is one number.
Variable sum_all(const Variable& x);
Variable mean_all(const Variable& x);

// Index of the first largest element along the last axis: i32 on the same device, the axis removed.
Tensor argmax(const Tensor& x);

}  // namespace filigree

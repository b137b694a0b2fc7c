// Operations that only move or rename elements.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/variable.h"

namespace filigree {

Variable reshape(const Variable& x, const Shape& shape);
// Elements [begin, end) of an axis.
Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end);
// Joins along an axis; all other extents must agree.
Variable concat(const std::vector<Variable>& parts, int axis);
// Exchanges two axes.
Variable transpose(const Variable& x, int axis_a, int axis_b);
// The same values on another device or in another element type; the variable itself when it is so
// already. The gradient goes back the same way.
Variable placed(const Variable& x, DeviceKind device, DType dtype = DType::kF32);

}  // namespace filigree

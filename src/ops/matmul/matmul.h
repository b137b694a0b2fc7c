// Matrix product of Variables.
#pragma once

#include "autograd/variable.h"

namespace filigree {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// C[..., M, N] = A[..., M, K] B[..., K, N], with either factor stored transposed. Leading axes must
// be equal in both, or B has rank 2 and serves every A. Throws Error for shapes that do not fit.
Variable matmul(const Variable& a, const Variable& b, MatmulOptions options = {});

}  // namespace filigree

// What cuBLASLt does not fuse into a product.
#pragma once

#include <cstdint>

#include "ops/matmul/gemm.h"

namespace filigree::cuda {

// C[m, n] = f(C[m, n] + bias[n]) on rows `c_row` apart, as gemm.h says of the epilogues; `pre` has
// the same layout. Both pointers may be null, but for kActivationGrad, which reads `pre`.
template <typename T>
void finish_product(std::int64_t M, std::int64_t N, std::int64_t c_row, const T* bias,
                    GemmEpilogue epilogue, Activation f, T* pre, T* C);

}  // namespace filigree::cuda

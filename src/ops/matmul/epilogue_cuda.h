// What cuBLASLt does not fuse into a product.
#pragma once

#include <cstdint>

namespace filigree::cuda {

// C[m, n] = f(C[m, n] + bias[n]), f being GELU or nothing, on rows `c_row` apart; `pre` receives
// the value before f, with the same layout. Both pointers may be null.
template <typename T>
void finish_product(std::int64_t M, std::int64_t N, std::int64_t c_row, const T* bias, bool gelu,
                    T* pre, T* C);

}  // namespace filigree::cuda

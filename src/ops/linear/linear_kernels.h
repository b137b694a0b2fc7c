// Column sums, the gradient of a linear layer's bias.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct ColumnSumArgs {
  std::int64_t rows = 0, cols = 0;
  const T* x = nullptr;   // [rows, cols]
  float* sums = nullptr;  // [cols], added to
};

namespace cpu {
void add_column_sums(const ColumnSumArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void add_column_sums(const ColumnSumArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

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

template <typename T = float>
struct GeluGradArgs {
  std::int64_t count = 0;
  const T* pre = nullptr;
  const T* grad = nullptr;
  T* out = nullptr;  // grad * gelu'(pre)
};

namespace cpu {
void add_column_sums(const ColumnSumArgs<>& args);
void gelu_grad(const GeluGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void add_column_sums(const ColumnSumArgs<T>& args);
template <typename T>
void gelu_grad(const GeluGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

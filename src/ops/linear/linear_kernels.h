// Column sums, the gradient of a linear layer's bias.
#pragma once

#include <cstdint>

namespace filigree {

struct ColumnSumArgs {
  std::int64_t rows = 0, cols = 0;
  const float* x = nullptr;  // [rows, cols]
  float* sums = nullptr;     // [cols], added to
};

struct GeluGradArgs {
  std::int64_t count = 0;
  const float* pre = nullptr;
  const float* grad = nullptr;
  float* out = nullptr;  // grad * gelu'(pre)
};

namespace cpu {
void add_column_sums(const ColumnSumArgs& args);
void gelu_grad(const GeluGradArgs& args);
}  // namespace cpu
}  // namespace filigree

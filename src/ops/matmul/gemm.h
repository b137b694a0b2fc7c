// Single-precision matrix product on the CPU, the kernel under every linear layer.
//
//   C[m,n] = epilogue( sum_k A[m,k] B[k,n] + (accumulate ? C[m,n] : 0) + bias[n] )
//
// A and B are read through two strides each, so transposes cost nothing; C is row-major.
// Deterministic: each element of C is summed by one thread in an order that depends only on the
// shape and the SIMD level, never on the thread count or on scheduling.
#pragma once

#include <cstdint>

namespace filigree {

enum class GemmEpilogue {
  kNone,
  kGelu,      // C = gelu(x); the value x before it goes to `pre` unless null
  kGeluGrad,  // C = x * gelu'(pre)
};

struct GemmArgs {
  std::int64_t M = 0, N = 0, K = 0;
  const float* A = nullptr;  // A[m * a_row + k * a_col]
  std::int64_t a_row = 0, a_col = 1;
  const float* B = nullptr;  // B[k * b_row + n * b_col]
  std::int64_t b_row = 0, b_col = 1;
  float* C = nullptr;  // C[m * c_row + n]
  std::int64_t c_row = 0;
  bool accumulate = false;
  const float* bias = nullptr;  // [N] or null
  GemmEpilogue epilogue = GemmEpilogue::kNone;
  float* pre = nullptr;  // pre[m * c_row + n]: written by kGelu, read by kGeluGrad
};

namespace cpu {

void gemm(const GemmArgs& args);

}  // namespace cpu
}  // namespace filigree

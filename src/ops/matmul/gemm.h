// Matrix product, the kernel under every linear layer.
//
//   C[m,n] = epilogue( sum_k A[m,k] B[k,n] + (accumulate ? C[m,n] : 0) + bias[n] )
//
// A and B are read through two strides each, so transposes cost nothing; C is row-major.
// Deterministic: each element of C is summed by one thread in an order that depends only on the
// shape and the SIMD level, never on the thread count or on scheduling.
//
// On the CPU everything is f32. On the GPU the factors are f32 (multiplied in full f32, not in
// tf32) or bf16 (summed in f32), and the result of bf16 factors may be f32.
#pragma once

#include <cstdint>
#include <type_traits>

#include "filigree/activation.h"
#include "filigree/device.h"

namespace filigree {

enum class GemmEpilogue {
  kNone,
  kActivation,      // C = f(x); the value x before it goes to `pre` unless null
  kActivationGrad,  // C = x * f'(pre)
};

template <typename T = float, typename Out = T>
struct GemmArgs {
  std::int64_t M = 0, N = 0, K = 0;
  const T* A = nullptr;  // A[m * a_row + k * a_col]
  std::int64_t a_row = 0, a_col = 1;
  const T* B = nullptr;  // B[k * b_row + n * b_col]
  std::int64_t b_row = 0, b_col = 1;
  Out* C = nullptr;  // C[m * c_row + n]
  std::int64_t c_row = 0;
  bool accumulate = false;
  const T* bias = nullptr;  // [N] or null
  GemmEpilogue epilogue = GemmEpilogue::kNone;
  Activation activation = Activation::kNone;  // f of the epilogue
  Out* pre = nullptr;  // pre[m * c_row + n]: written by kActivation, read by kActivationGrad
};

namespace cpu {

void gemm(const GemmArgs<>& args);

}  // namespace cpu

namespace cuda {

// A batch of products of one shape: each factor and result `step` elements after the one before.
struct GemmBatch {
  std::int64_t count = 1;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};

// Of each factor one stride must be 1. An epilogue does not go with a batch.
template <typename T, typename Out>
void gemm(const GemmArgs<T, Out>& args, const GemmBatch& batch = {});

}  // namespace cuda

// The product on the device where its matrices lie.
template <typename T, typename Out>
void gemm_on(DeviceKind device, const GemmArgs<T, Out>& args) {
  if (device == DeviceKind::kCpu) {
    if constexpr (std::is_same_v<GemmArgs<T, Out>, GemmArgs<>>) cpu::gemm(args);
  } else if constexpr (kHasCuda) {
    cuda::gemm(args);
  }
}

}  // namespace filigree

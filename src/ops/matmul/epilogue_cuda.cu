#include "ops/matmul/epilogue_cuda.h"
#include "runtime/cuda/activation_cuda.cuh"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void finish_each(std::int64_t count, std::int64_t N, std::int64_t c_row, const T* bias,
                            GemmEpilogue epilogue, Activation f, T* pre, T* C) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const std::int64_t n = i % N, at = i / N * c_row + n;
    float x = to_float(C[at]);
    if (bias != nullptr) x += to_float(bias[n]);
    if (epilogue == GemmEpilogue::kActivationGrad) {
      x *= activation_slope(f, to_float(pre[at]));
    } else if (epilogue == GemmEpilogue::kActivation) {
      if (pre != nullptr) pre[at] = from_float<T>(x);
      x = activated(f, x);
    }
    C[at] = from_float<T>(x);
  }
}

}  // namespace

template <typename T>
void finish_product(std::int64_t M, std::int64_t N, std::int64_t c_row, const T* bias,
                    GemmEpilogue epilogue, Activation f, T* pre, T* C) {
  if (M * N == 0) return;
  finish_each<<<blocks_for(M * N, kThreads * 4), kThreads, 0, stream()>>>(M * N, N, c_row, bias,
                                                                          epilogue, f, pre, C);
  check_launch("finish_product");
}

template void finish_product(std::int64_t, std::int64_t, std::int64_t, const float*, GemmEpilogue,
                             Activation, float*, float*);
template void finish_product(std::int64_t, std::int64_t, std::int64_t, const Bf16*, GemmEpilogue,
                             Activation, Bf16*, Bf16*);

}  // namespace filigree::cuda

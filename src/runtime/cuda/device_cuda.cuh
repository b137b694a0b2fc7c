// What device code shares: element types, vectors of eight elements, sums over warps and blocks in
// a fixed order.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "filigree/device.h"

namespace filigree::cuda {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline Bf16 from_float<Bf16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

// Elements of one 16-byte access.
template <typename T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(16) Wide {
  T values[kWide<T>];
};

// True when rows of `width` elements from `data` on can be read 16 bytes at a time.
template <typename T>
__host__ __device__ inline bool wide_rows(const T* data, std::int64_t width) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && width % kWide<T> == 0;
}

template <typename Number>
__device__ inline Number warp_sum(Number value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  return value;
}

__device__ inline float warp_maximum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
  return value;
}

// Over all threads of a block of whole warps (at most 1024 threads); every thread gets the result.
// `shared` holds one number a warp, and may be used again after the next barrier.
template <typename Number>
__device__ inline Number block_sum(Number value, Number* shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  value = warp_sum(value);
  __syncthreads();  // the last result has been read by all
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  Number total = shared[0];
  for (int w = 1; w < warps; ++w) total += shared[w];
  return total;
}

__device__ inline float block_maximum(float value, float* shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  value = warp_maximum(value);
  __syncthreads();
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  float most = shared[0];
  for (int w = 1; w < warps; ++w) most = fmaxf(most, shared[w]);
  return most;
}

}  // namespace filigree::cuda

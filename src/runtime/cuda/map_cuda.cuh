// Kernels that compute each element from those at the same place in other arrays.
#pragma once

#include <cstdint>

#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {

inline constexpr int kMapThreads = 256;

// out[i] = f(a[i], b[i], c[i]), 16 bytes at a time when `aligned`.
template <typename T, typename Function>
__global__ void map_each(std::int64_t count, bool aligned, const T* a, const T* b, const T* c,
                         T* out, Function function) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kMapThreads;
  const std::int64_t vectors = aligned ? count / kWide<T> : 0;
  for (std::int64_t v = thread; v < vectors; v += threads) {
    const Wide<T> x = reinterpret_cast<const Wide<T>*>(a)[v];
    const Wide<T> y = reinterpret_cast<const Wide<T>*>(b)[v];
    const Wide<T> z = reinterpret_cast<const Wide<T>*>(c)[v];
    Wide<T> result;
#pragma unroll
    for (int k = 0; k < kWide<T>; ++k)
      result.values[k] = from_float<T>(
          function(to_float(x.values[k]), to_float(y.values[k]), to_float(z.values[k])));
    reinterpret_cast<Wide<T>*>(out)[v] = result;
  }
  for (std::int64_t i = vectors * kWide<T> + thread; i < count; i += threads)
    out[i] = from_float<T>(function(to_float(a[i]), to_float(b[i]), to_float(c[i])));
}

// `out` may be one of the others.
template <typename T, typename Function>
void map(const char* name, std::int64_t count, const T* a, const T* b, const T* c, T* out,
         const Function& function) {
  if (count == 0) return;
  const auto at = [](const T* data) { return reinterpret_cast<std::uintptr_t>(data) % 16; };
  const bool aligned = at(a) == 0 && at(b) == 0 && at(c) == 0 && at(out) == 0;
  map_each<<<blocks_for(count, kMapThreads * kWide<T>), kMapThreads, 0, stream()>>>(
      count, aligned, a, b, c, out, function);
  check_launch(name);
}

}  // namespace filigree::cuda

// Loops of a block's threads over a row, 16 bytes at a time from the first boundary on: rows of an
// odd width begin anywhere.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/cuda/device_cuda.cuh"

namespace filigree::cuda {

// Elements of a row before its first 16-byte boundary.
template <typename T>
__device__ inline std::int64_t unaligned_head(const T* row, std::int64_t width) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % 16);
  const std::int64_t head = (16 - past) % 16 / static_cast<std::int64_t>(sizeof(T));
  return head < width ? head : width;
}

// f(c, value) for all c < width; a thread sees its elements in ascending order, but for the few
// outside whole vectors.
template <typename T, typename Function>
__device__ inline void for_row(const T* row, std::int64_t width, const Function& function) {
  const std::int64_t head = unaligned_head(row, width);
  if (static_cast<std::int64_t>(threadIdx.x) < head)
    function(threadIdx.x, to_float(row[threadIdx.x]));
  const std::int64_t vectors = (width - head) / kWide<T>;
  const auto* wide = reinterpret_cast<const Wide<T>*>(row + head);
  for (std::int64_t v = threadIdx.x; v < vectors; v += blockDim.x) {
    const Wide<T> values = wide[v];
#pragma unroll
    for (int k = 0; k < kWide<T>; ++k)
      function(head + v * kWide<T> + k, to_float(values.values[k]));
  }
  for (std::int64_t c = head + vectors * kWide<T> + threadIdx.x; c < width; c += blockDim.x)
    function(c, to_float(row[c]));
}

// to[c] = f(c, a[c], b[c]); the three rows begin at the same place between boundaries, or all
// accesses are single ones. `to` may be one of the others.
template <typename T, typename Function>
__device__ inline void map_rows(const T* a, const T* b, T* to, std::int64_t width,
                                const Function& function) {
  const auto place = [](const T* row) { return reinterpret_cast<std::uintptr_t>(row) % 16; };
  const bool together = place(a) == place(b) && place(a) == place(to);
  const std::int64_t head = together ? unaligned_head(a, width) : width;
  for (std::int64_t c = threadIdx.x; c < head; c += blockDim.x)
    to[c] = from_float<T>(function(c, to_float(a[c]), to_float(b[c])));
  const std::int64_t vectors = (width - head) / kWide<T>;
  for (std::int64_t v = threadIdx.x; v < vectors; v += blockDim.x) {
    const Wide<T> x = reinterpret_cast<const Wide<T>*>(a + head)[v];
    const Wide<T> y = reinterpret_cast<const Wide<T>*>(b + head)[v];
    Wide<T> result;
#pragma unroll
    for (int k = 0; k < kWide<T>; ++k)
      result.values[k] = from_float<T>(
          function(head + v * kWide<T> + k, to_float(x.values[k]), to_float(y.values[k])));
    reinterpret_cast<Wide<T>*>(to + head)[v] = result;
  }
  for (std::int64_t c = head + vectors * kWide<T> + threadIdx.x; c < width; c += blockDim.x)
    to[c] = from_float<T>(function(c, to_float(a[c]), to_float(b[c])));
}

// The largest of a row and the sum of e^(x - largest), by all threads of a block.
struct Exponentials {
  float maximum, sum;
};

template <typename T>
__device__ inline Exponentials sum_of_exponentials(const T* row, std::int64_t width,
                                                   float* shared) {
  // Each thread's own pair, rescaled when larger values come, which is seldom.
  float maximum = -INFINITY, sum = 0.0f;
  const auto add = [&](const auto& values, auto count) {
    float most = maximum;
#pragma unroll
    for (int k = 0; k < count; ++k) most = fmaxf(most, to_float(values[k]));
    if (most > maximum) {
      sum *= __expf(maximum - most);
      maximum = most;
    }
    const float from = maximum == -INFINITY ? 0.0f : maximum;
#pragma unroll
    for (int k = 0; k < count; ++k) sum += __expf(to_float(values[k]) - from);  // keeps a NaN
  };
  const std::int64_t head = unaligned_head(row, width);
  const std::int64_t vectors = (width - head) / kWide<T>;
  const auto* wide = reinterpret_cast<const Wide<T>*>(row + head);
#pragma unroll 2
  for (std::int64_t v = threadIdx.x; v < vectors; v += blockDim.x) {
    const Wide<T> values = wide[v];
    add(values.values, std::integral_constant<int, kWide<T>>());
  }
  if (static_cast<std::int64_t>(threadIdx.x) < head)
    add(row + threadIdx.x, std::integral_constant<int, 1>());
  for (std::int64_t c = head + vectors * kWide<T> + threadIdx.x; c < width; c += blockDim.x)
    add(row + c, std::integral_constant<int, 1>());
  const float most = block_maximum(maximum, shared);
  const float scaled = sum == 0.0f ? 0.0f : sum * __expf(maximum - most);
  return {most, block_sum(scaled, shared)};
}

// Threads for a block that works on one row.
inline unsigned row_threads(std::int64_t width, unsigned most = 512) {
  unsigned threads = 32;
  while (threads < most && static_cast<std::int64_t>(threads) * 8 < width) threads *= 2;
  return threads;
}

}  // namespace filigree::cuda

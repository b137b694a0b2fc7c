// Two stages: blocks sum pieces of the axis into partial sums, then a warp a result adds these in a
// fixed order. With few results and a long axis there are many pieces, else only one.

#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/sum_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 32;  // of a block, where the results lie side by side
constexpr int kRows = kThreads / kColumns;
// Blocks that keep a GPU busy; fixed, so that the order of a sum is the same on every GPU.
constexpr std::int64_t kWantedBlocks = 1024;
constexpr std::int64_t kMostPieces = 512;

// inner == 1: each block sums the piece blockIdx.y of row blockIdx.x.
template <typename T>
__global__ void sum_rows(std::int64_t extent, std::int64_t piece, const T* x, double* partial) {
  __shared__ double shared[kThreads / 32];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * piece;
  const std::int64_t end = begin + piece < extent ? begin + piece : extent;
  const T* row = x + static_cast<std::int64_t>(blockIdx.x) * extent;
  double total = 0.0;
  for (std::int64_t k = begin + threadIdx.x; k < end; k += kThreads)
    total += static_cast<double>(to_float(row[k]));
  total = block_sum(total, shared);
  if (threadIdx.x == 0)
    partial[static_cast<std::int64_t>(blockIdx.x) * gridDim.y + blockIdx.y] = total;
}

// inner > 1: each block sums a piece of 32 neighbouring columns.
template <typename T>
__global__ void sum_columns(std::int64_t extent, std::int64_t inner, std::int64_t piece, const T* x,
                            double* partial) {
  __shared__ double shared[kRows][kColumns];
  const std::int64_t tiles = (inner + kColumns - 1) / kColumns;
  const std::int64_t outer = blockIdx.x / tiles;
  const std::int64_t column = blockIdx.x % tiles * kColumns + threadIdx.x;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * piece;
  const std::int64_t end = begin + piece < extent ? begin + piece : extent;
  double total = 0.0;
  if (column < inner) {
    const T* from = x + outer * extent * inner + column;
    for (std::int64_t k = begin + threadIdx.y; k < end; k += kRows)
      total += static_cast<double>(to_float(from[k * inner]));
  }
  shared[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y == 0 && column < inner) {
    for (int r = 1; r < kRows; ++r) total += shared[r][threadIdx.x];
    partial[(outer * inner + column) * gridDim.y + blockIdx.y] = total;
  }
}

// The same where rows begin at 16-byte boundaries: 16 bytes of neighbouring columns a thread. A
// thread's own few sums are taken in f32.
template <typename T>
__global__ void sum_wide_columns(std::int64_t extent, std::int64_t inner, std::int64_t piece,
                                 const T* x, double* partial) {
  __shared__ float shared[kRows][kColumns * kWide<T>];
  const std::int64_t tiles = (inner + kColumns * kWide<T> - 1) / (kColumns * kWide<T>);
  const std::int64_t outer = blockIdx.x / tiles;
  const std::int64_t tile = blockIdx.x % tiles * kColumns * kWide<T>;
  const std::int64_t column = tile + threadIdx.x * kWide<T>;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * piece;
  const std::int64_t end = begin + piece < extent ? begin + piece : extent;
  float totals[kWide<T>] = {};
  if (column < inner) {
    const T* from = x + outer * extent * inner + column;
#pragma unroll 4
    for (std::int64_t k = begin + threadIdx.y; k < end; k += kRows) {
      const Wide<T> values = *reinterpret_cast<const Wide<T>*>(from + k * inner);
#pragma unroll
      for (int w = 0; w < kWide<T>; ++w) totals[w] += to_float(values.values[w]);
    }
  }
#pragma unroll
  for (int w = 0; w < kWide<T>; ++w) shared[threadIdx.y][threadIdx.x * kWide<T> + w] = totals[w];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * kColumns + threadIdx.x);
  for (int c = thread; c < kColumns * kWide<T>; c += kThreads) {
    if (tile + c >= inner) continue;
    double total = 0.0;
    for (int r = 0; r < kRows; ++r) total += static_cast<double>(shared[r][c]);
    partial[(outer * inner + tile + c) * gridDim.y + blockIdx.y] = total;
  }
}

// A warp a result.
template <typename Out>
__global__ void finish(std::int64_t count, std::int64_t pieces, double factor,
                       const double* partial, Out* out, bool add) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (i >= count) return;
  double total = 0.0;
  for (std::int64_t p = threadIdx.x % 32; p < pieces; p += 32) total += partial[i * pieces + p];
  total = warp_sum(total);
  if (threadIdx.x % 32 != 0) return;
  const float result = static_cast<float>(total * factor);
  out[i] = from_float<Out>(add ? to_float(out[i]) + result : result);
}

template <typename T, typename Out>
void run(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor, const T* x,
         Out* out, bool add) {
  const std::int64_t count = outer * inner;
  if (count == 0) return;
  const bool rows = inner == 1, wide = !rows && wide_rows(x, inner);
  const std::int64_t columns = wide ? kColumns * kWide<T> : kColumns;
  const std::int64_t blocks = rows ? outer : outer * ((inner + columns - 1) / columns);
  const std::int64_t least = rows ? 4096 : 64;  // of the axis a block
  std::int64_t pieces = (kWantedBlocks + blocks - 1) / blocks;
  const std::int64_t most = (extent + least - 1) / least;
  if (pieces > most) pieces = most;
  if (pieces > kMostPieces) pieces = kMostPieces;
  if (pieces < 1) pieces = 1;
  const std::int64_t piece = (extent + pieces - 1) / pieces;
  const Workspace workspace(static_cast<std::size_t>(count * pieces) * sizeof(double));
  double* partial = workspace.as<double>();
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces));
  if (rows)
    sum_rows<<<grid, kThreads, 0, stream()>>>(extent, piece, x, partial);
  else if (wide)
    sum_wide_columns<<<grid, dim3(kColumns, kRows), 0, stream()>>>(extent, inner, piece, x,
                                                                   partial);
  else
    sum_columns<<<grid, dim3(kColumns, kRows), 0, stream()>>>(extent, inner, piece, x, partial);
  check_launch("sum_axis");
  finish<<<blocks_for(count, kThreads / 32, INT32_MAX), kThreads, 0, stream()>>>(
      count, pieces, factor, partial, out, add);
  check_launch("sum_axis");
}

}  // namespace

void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const float* x, float* out, bool add) {
  run(outer, extent, inner, factor, x, out, add);
}
void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const Bf16* x, float* out, bool add) {
  run(outer, extent, inner, factor, x, out, add);
}
void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const Bf16* x, Bf16* out, bool add) {
  run(outer, extent, inner, factor, x, out, add);
}

}  // namespace filigree::cuda

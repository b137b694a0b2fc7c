// Sums run over entries in their order, one thread a column, so that no sum depends on timing. The
// order by feature is that of CUB's radix sort, which is stable.

#include <cub/device/device_radix_sort.cuh>

#include "filigree/ops/sparse_code/sparse_code_kernels.h"
#include "filigree/runtime/cuda/device_cuda.cuh"
#include "filigree/runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 128;

template <typename T>
__global__ void mix(MixRowsArgs<T> args) {
  const std::int64_t r = blockIdx.x, m = blockIdx.y;
  const std::int32_t begin = args.begin[r], end = args.begin[r + 1];
  if (begin == end) return;
  const T* from = args.from.data + m * args.from.target_step;
  float* to = args.to.data + m * args.to.target_step + r * args.to.row_step;
  for (std::int64_t c = threadIdx.x; c < args.width; c += kThreads) {
    float total = to[c];
#pragma unroll 4
    for (std::int32_t p = begin; p < end; ++p)
      total += args.coefficient[p] * to_float(from[args.feature[p] * args.from.row_step + c]);
    to[c] = total;
  }
}

constexpr int kWarps = kThreads / 32;
constexpr int kColumnsALane = 4;
constexpr int kTile = 32 * kColumnsALane;

// The warps of a block share a feature's entries, because some features are active at a large part
// of all rows; their sums are added in the order of the warps.
template <typename T>
__global__ void gather_by_feature(GatherRowsArgs<T> args) {
  __shared__ float parts[kWarps][kTile];
  const std::int64_t f = blockIdx.x, m = blockIdx.y;
  const std::int32_t begin = args.begin[f], end = args.begin[f + 1];
  if (begin == end) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const T* from = args.from.data + m * args.from.target_step;
  float* to = args.to.data + m * args.to.target_step + f * args.to.row_step;
  for (std::int64_t first = 0; first < args.width; first += kTile) {
    float total[kColumnsALane] = {};
#pragma unroll 4
    for (std::int32_t q = begin + warp; q < end; q += kWarps) {
      const float coefficient = args.coefficient[args.entry[q]];
      const T* row = from + args.row[q] * args.from.row_step;
#pragma unroll
      for (int i = 0; i < kColumnsALane; ++i) {
        const std::int64_t c = first + 32 * i + lane;
        if (c < args.width) total[i] += coefficient * to_float(row[c]);
      }
    }
    for (int i = 0; i < kColumnsALane; ++i) parts[warp][32 * i + lane] = total[i];
    __syncthreads();
    for (int t = static_cast<int>(threadIdx.x); t < kTile && first + t < args.width;
         t += kThreads) {
      float sum = to[first + t];
      for (int w = 0; w < kWarps; ++w) sum += parts[w][t];
      to[first + t] = sum;
    }
    __syncthreads();
  }
}

// A warp an entry; the warps of a block share a row.
template <typename T>
__global__ void dots(DotRowsArgs<T> args) {
  const std::int64_t r = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int32_t p = args.begin[r] + warp; p < args.begin[r + 1]; p += kThreads / 32) {
    float total = 0.0f;
    for (std::int64_t m = 0; m < args.targets; ++m) {
      const T* w = args.of_features.data + m * args.of_features.target_step +
                   args.feature[p] * args.of_features.row_step;
      const float* y = args.of_rows.data + m * args.of_rows.target_step + r * args.of_rows.row_step;
      for (std::int64_t c = lane; c < args.width; c += 32) total += to_float(w[c]) * y[c];
    }
    total = warp_sum(total);
    if (lane == 0) args.to[p] = total;
  }
}

// The row of every entry, and its number.
__global__ void entry_rows(CodeByFeatureArgs args, std::int32_t* rows, std::int32_t* numbers) {
  const std::int64_t r = blockIdx.x;
  for (std::int32_t p = args.begin[r] + static_cast<std::int32_t>(threadIdx.x);
       p < args.begin[r + 1]; p += kThreads) {
    rows[p] = static_cast<std::int32_t>(r);
    numbers[p] = p;
  }
}

// Where each feature begins among the sorted ones, and the rows in their order.
__global__ void place_features(CodeByFeatureArgs args, const std::int32_t* sorted,
                               const std::int32_t* rows) {
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (q > args.entries) return;
  const std::int64_t before = q == 0 ? -1 : sorted[q - 1];
  const std::int64_t here = q == args.entries ? args.features : sorted[q];
  for (std::int64_t f = before + 1; f <= here; ++f)
    args.feature_begin[f] = static_cast<std::int32_t>(q);
  if (q < args.entries) args.row[q] = rows[args.entry[q]];
}

__global__ void saturate(SaturationArgs args) {
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       p < args.entries; p += static_cast<std::int64_t>(gridDim.x) * kThreads)
    args.y[p] = tanhf(args.c * args.value[p] * args.norm[args.feature[p]]);
}

__global__ void saturate_grad(SaturationGradArgs args) {
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       p < args.entries; p += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float slope = args.dy[p] * (1.0f - args.y[p] * args.y[p]) * args.c;
    args.dvalue[p] = slope * args.norm[args.feature[p]];
    args.slope[p] = slope * args.value[p];
  }
}

// A warp a feature.
__global__ void sum_by_feature(SumEntriesArgs args) {
  const std::int64_t f = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (f >= args.features) return;
  float total = 0.0f;
  for (std::int32_t q = args.begin[f] + lane; q < args.begin[f + 1]; q += 32)
    total += args.coefficient[args.entry[q]];
  total = warp_sum(total);
  if (lane == 0) args.to[f] += args.factor * total;
}

}  // namespace

template <typename T>
void mix_rows(const MixRowsArgs<T>& args) {
  if (args.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(args.rows), static_cast<unsigned>(args.targets));
  mix<<<grid, kThreads, 0, stream()>>>(args);
  check_launch("mix_rows");
}

template <typename T>
void gather_rows_by_feature(const GatherRowsArgs<T>& args) {
  if (args.features == 0) return;
  const dim3 grid(static_cast<unsigned>(args.features), static_cast<unsigned>(args.targets));
  gather_by_feature<<<grid, kThreads, 0, stream()>>>(args);
  check_launch("gather_rows_by_feature");
}

template <typename T>
void dot_rows(const DotRowsArgs<T>& args) {
  if (args.rows == 0) return;
  dots<<<static_cast<unsigned>(args.rows), kThreads, 0, stream()>>>(args);
  check_launch("dot_rows");
}

void code_by_feature(const CodeByFeatureArgs& args) {
  const auto count = static_cast<std::size_t>(args.entries);
  const Workspace memory(3 * (count + 1) * sizeof(std::int32_t));
  auto* rows = memory.as<std::int32_t>();
  std::int32_t *numbers = rows + count, *sorted = numbers + count;
  if (args.rows > 0) {
    entry_rows<<<static_cast<unsigned>(args.rows), kThreads, 0, stream()>>>(args, rows, numbers);
    check_launch("entry_rows");
  }
  if (count > 0) {
    int bits = 1;
    while ((std::int64_t{1} << bits) < args.features) ++bits;
    std::size_t bytes = 0;
    const auto items = static_cast<int>(args.entries);
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, args.feature, sorted, numbers, args.entry,
                                    items, 0, bits, stream());
    const Workspace scratch(bytes);
    cub::DeviceRadixSort::SortPairs(scratch.as<void>(), bytes, args.feature, sorted, numbers,
                                    args.entry, items, 0, bits, stream());
    check_launch("sort by feature");
  }
  place_features<<<blocks_for(args.entries + 1, kThreads, INT32_MAX), kThreads, 0, stream()>>>(
      args, sorted, rows);
  check_launch("place_features");
}

void saturation(const SaturationArgs& args) {
  if (args.entries == 0) return;
  saturate<<<blocks_for(args.entries, kThreads), kThreads, 0, stream()>>>(args);
  check_launch("saturation");
}

void saturation_grad(const SaturationGradArgs& args) {
  if (args.entries == 0) return;
  saturate_grad<<<blocks_for(args.entries, kThreads), kThreads, 0, stream()>>>(args);
  check_launch("saturation_grad");
}

void sum_entries(const SumEntriesArgs& args) {
  if (args.features == 0) return;
  sum_by_feature<<<blocks_for(args.features, kWarps, INT32_MAX), kThreads, 0, stream()>>>(args);
  check_launch("sum_entries");
}

template void mix_rows(const MixRowsArgs<float>&);
template void mix_rows(const MixRowsArgs<Bf16>&);
template void gather_rows_by_feature(const GatherRowsArgs<float>&);
template void gather_rows_by_feature(const GatherRowsArgs<Bf16>&);
template void dot_rows(const DotRowsArgs<float>&);
template void dot_rows(const DotRowsArgs<Bf16>&);

}  // namespace filigree::cuda

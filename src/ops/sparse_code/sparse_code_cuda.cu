// Sums run over entries in their order, one thread a column, so that no sum depends on timing. The
// order by feature is that of CUB's radix sort, which is stable.

#include <cub/device/device_radix_sort.cuh>

#include "ops/sparse_code/sparse_code_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/together_cuda.cuh"

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
constexpr int kAtOnce = 4;  // rows loaded before they are added

template <typename T>
using Gathers = Together<GatherRowsArgs<T>, 30>;
using Sums = Together<SumEntriesArgs, 60>;
using Densities = Together<DensityArgs, 50>;

// Columns of a block: so many of a lane.
template <int kVector>
constexpr int kTile = 32 * kVector;

template <typename T>
std::int64_t tiles_of(const GatherRowsArgs<T>& args, int tile) {
  return (args.targets * args.width + tile - 1) / tile;
}

template <typename T, int kVector>
__device__ inline void load(const T* from, float (&to)[kVector]) {
  if constexpr (kVector == 1) {
    to[0] = to_float(*from);
  } else {
    static_assert(kVector == kWide<T>);
    const Wide<T> values = *reinterpret_cast<const Wide<T>*>(from);
#pragma unroll
    for (int k = 0; k < kVector; ++k) to[k] = to_float(values.values[k]);
  }
}

// A block has a feature and some columns of all its targets. Its warps share the feature's entries,
// because some features are active at a large part of all rows; their sums are added in the order
// of the warps.
template <typename T, int kVector>
__global__ void gather_by_feature(const __grid_constant__ Gathers<T> all) {
  __shared__ float parts[kWarps][kTile<kVector>];
  __shared__ std::int32_t rows[kThreads];
  __shared__ float coefficients[kThreads];
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = all.array_of(block);
  const GatherRowsArgs<T>& args = all.arrays[array];
  const int width = static_cast<int>(args.width);
  const int columns = static_cast<int>(args.targets) * width;
  const int tiles = (columns + kTile<kVector> - 1) / kTile<kVector>;
  const std::int64_t f = (block - all.first[array]) / tiles;
  const int first = (block - all.first[array]) % tiles * kTile<kVector>;
  const std::int32_t begin = args.begin[f], end = args.begin[f + 1];
  if (begin == end && args.add) return;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int c = first + lane * kVector;
  const bool inside = c < columns;
  const int m = inside ? c / width : 0;
  const T* from = args.from.data + m * args.from.target_step + (c - m * width);
  float total[kVector] = {};
  for (std::int32_t chunk = begin; chunk < end; chunk += kThreads) {
    const int there = end - chunk < kThreads ? end - chunk : kThreads;
    // To whole groups, by rows that count as nothing.
    const int padded = (there + kWarps * kAtOnce - 1) / (kWarps * kAtOnce) * (kWarps * kAtOnce);
    if (thread < padded) {
      const std::int32_t q = chunk + (thread < there ? thread : there - 1);
      rows[thread] = args.row[q];
      coefficients[thread] = thread < there ? args.coefficient[args.entry[q]] : 0.0f;
    }
    __syncthreads();
    for (int i = warp * kAtOnce; inside && i < padded; i += kWarps * kAtOnce) {
      float values[kAtOnce][kVector];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) load(from + rows[i + j] * args.from.row_step, values[j]);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
        for (int k = 0; k < kVector; ++k) total[k] += coefficients[i + j] * values[j][k];
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kVector; ++k) parts[warp][lane * kVector + k] = total[k];
  __syncthreads();
  for (int t = thread; t < kTile<kVector> && first + t < columns; t += kThreads) {
    const int target = (first + t) / width;
    float& to = args.to.data[target * args.to.target_step + f * args.to.row_step +
                             (first + t - target * width)];
    float sum = args.add ? to : 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += parts[w][t];
    to = sum;
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

// Where each group begins among the sorted ones, and rows and entries in their order.
__global__ void place_entries(EntryOrderArgs args, const std::int32_t* sorted,
                              const std::int32_t* order) {
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (q > args.entries) return;
  const auto group_at = [&](std::int64_t place) -> std::int64_t {
    const auto group = static_cast<std::uint32_t>(sorted[place]);
    return group < args.groups ? group : args.groups;
  };
  const std::int64_t before = q == 0 ? -1 : group_at(q - 1);
  const std::int64_t here = q == args.entries ? args.groups : group_at(q);
  for (std::int64_t g = before + 1; g <= here; ++g) args.begin[g] = static_cast<std::int32_t>(q);
  if (here == args.groups) return;
  const std::int32_t number = order[q];
  args.row[q] = args.row_of[number];
  args.entry[q] = static_cast<std::int32_t>(number % args.room);
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
__global__ void sum_by_feature(const __grid_constant__ Sums all) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = all.array_of(block);
  const SumEntriesArgs& args = all.arrays[array];
  const std::int64_t f = (block - all.first[array]) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (f >= args.features) return;
  float total = 0.0f;
  for (std::int32_t q = args.begin[f] + lane; q < args.begin[f + 1]; q += 32)
    total += args.coefficient[args.entry[q]];
  total = warp_sum(total);
  if (lane == 0) args.to[f] = (args.add ? args.to[f] : 0.0f) + args.factor * total;
}

__global__ void densities(const __grid_constant__ Densities all) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = all.array_of(block);
  const DensityArgs& args = all.arrays[array];
  const std::int64_t f = (block - all.first[array]) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (f >= args.features) return;
  std::int32_t active = 0;
  for (std::int32_t q = args.begin[f] + lane; q < args.begin[f + 1]; q += 32)
    active += args.value[args.entry[q]] > 0.0f ? 1 : 0;
  active = warp_sum(active);
  if (lane != 0) return;
  const float density =
      args.keep * args.density[f] + (1.0f - args.keep) * static_cast<float>(active) / args.rows;
  args.density[f] = density;
  if (active > 0) atomicAdd(&args.counts[0], active);
  if (density < args.dead) atomicAdd(&args.counts[1], 1);
}

std::int64_t blocks_of_features(std::int64_t features) { return (features + kWarps - 1) / kWarps; }

template <typename T, int kVector>
void gather_batches(const GatherRowsArgs<T>* arrays, std::int64_t count) {
  in_batches<Gathers<T>>(
      arrays, count,
      [](const GatherRowsArgs<T>& args) { return args.features * tiles_of(args, kTile<kVector>); },
      [](const Gathers<T>& all, unsigned blocks) {
        gather_by_feature<T, kVector><<<blocks, kThreads, 0, stream()>>>(all);
        check_launch("gather_rows_by_feature");
      });
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
void gather_rows_by_feature(const GatherRowsArgs<T>* arrays, std::int64_t count) {
  bool wide = true;
  for (std::int64_t a = 0; a < count; ++a) {
    const GatherRowsArgs<T>& args = arrays[a];
    wide = wide && wide_rows(args.from.data, args.width) && args.from.row_step % kWide<T> == 0 &&
           args.from.target_step % kWide<T> == 0;
  }
  wide ? gather_batches<T, kWide<T>>(arrays, count) : gather_batches<T, 1>(arrays, count);
}

void order_entries(const EntryOrderArgs& args) {
  const auto count = static_cast<std::size_t>(args.entries);
  const Workspace memory(2 * (count + 1) * sizeof(std::int32_t));
  auto* sorted = memory.as<std::int32_t>();
  std::int32_t* order = sorted + count;
  if (count > 0) {
    int bits = 1;  // such that all of them set are no group
    while ((std::int64_t{1} << bits) <= args.groups) ++bits;
    std::size_t bytes = 0;
    const auto items = static_cast<int>(args.entries);
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, args.group, sorted, args.number, order, items,
                                    0, bits, stream());
    const Workspace scratch(bytes);
    cub::DeviceRadixSort::SortPairs(scratch.as<void>(), bytes, args.group, sorted, args.number,
                                    order, items, 0, bits, stream());
    check_launch("sort by feature");
  }
  place_entries<<<blocks_for(args.entries + 1, kThreads, INT32_MAX), kThreads, 0, stream()>>>(
      args, sorted, order);
  check_launch("place_entries");
}

void code_by_feature(const CodeByFeatureArgs& args) {
  const auto count = static_cast<std::size_t>(args.entries);
  const Workspace memory(2 * (count + 1) * sizeof(std::int32_t));
  auto* rows = memory.as<std::int32_t>();
  std::int32_t* numbers = rows + count;
  if (args.rows > 0) {
    entry_rows<<<static_cast<unsigned>(args.rows), kThreads, 0, stream()>>>(args, rows, numbers);
    check_launch("entry_rows");
  }
  order_entries({.groups = args.features,
                 .entries = args.entries,
                 .room = args.entries,
                 .group = args.feature,
                 .number = numbers,
                 .row_of = rows,
                 .begin = args.feature_begin,
                 .row = args.row,
                 .entry = args.entry});
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

void sum_entries(const SumEntriesArgs* arrays, std::int64_t count) {
  in_batches<Sums>(
      arrays, count, [](const SumEntriesArgs& args) { return blocks_of_features(args.features); },
      [](const Sums& all, unsigned blocks) {
        sum_by_feature<<<blocks, kThreads, 0, stream()>>>(all);
        check_launch("sum_entries");
      });
}

void update_density(const DensityArgs* arrays, std::int64_t count) {
  in_batches<Densities>(
      arrays, count, [](const DensityArgs& args) { return blocks_of_features(args.features); },
      [](const Densities& all, unsigned blocks) {
        densities<<<blocks, kThreads, 0, stream()>>>(all);
        check_launch("update_density");
      });
}

template void mix_rows(const MixRowsArgs<float>&);
template void mix_rows(const MixRowsArgs<Bf16>&);
template void gather_rows_by_feature(const GatherRowsArgs<float>*, std::int64_t);
template void gather_rows_by_feature(const GatherRowsArgs<Bf16>*, std::int64_t);

}  // namespace filigree::cuda

// A block a row; entries of a row are placed by prefix sums, so that they keep their order. Counts
// are whole numbers, whose sums do not depend on timing.

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "ops/sparse_encode/sparse_encode_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
using Scan = cub::BlockScan<std::int32_t, kThreads>;

__device__ inline bool passes(const SelectArgs& args, std::int64_t r, std::int64_t f, float& v) {
  v = args.h[r * args.features + f] + args.bias[f];
  const float bound = args.feature_bound != nullptr ? args.feature_bound[f]
                      : args.row_bound != nullptr   ? args.row_bound[r]
                                                    : args.bound;
  return v > bound;
}

// counts[r + 1], with counts[0] = 0, for the sum over rows.
__global__ void count_rows(SelectArgs args, std::int32_t* counts) {
  __shared__ std::int32_t shared[32];
  const std::int64_t r = blockIdx.x;
  std::int32_t count = 0;
  float v = 0.0f;
  for (std::int64_t f = threadIdx.x; f < args.features; f += kThreads)
    count += passes(args, r, f, v) ? 1 : 0;
  count = block_sum(count, shared);
  if (threadIdx.x != 0) return;
  counts[r + 1] = count;
  if (r == 0) counts[0] = 0;
}

__global__ void fill_rows(FillArgs args) {
  __shared__ Scan::TempStorage memory;
  const std::int64_t r = blockIdx.x;
  std::int32_t place = args.begin[r];
  for (std::int64_t first = 0; first < args.select.features; first += kThreads) {
    const std::int64_t f = first + threadIdx.x;
    float v = 0.0f;
    const std::int32_t mine = f < args.select.features && passes(args.select, r, f, v) ? 1 : 0;
    std::int32_t before = 0, all = 0;
    __syncthreads();
    Scan(memory).ExclusiveSum(mine, before, all);
    if (mine != 0) {
      const std::int32_t p = place + before;
      args.feature[p] = static_cast<std::int32_t>(f);
      args.value[p] = args.threshold == nullptr || v > args.threshold[f] ? v : 0.0f;
      if (args.pre != nullptr) args.pre[p] = v;
    }
    place += all;
  }
}

// Numbers as whole ones of the same order.
__device__ inline std::uint32_t ordered(float v) {
  const std::uint32_t bits = __float_as_uint(v);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_ordered(std::uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}

// Digit by digit of eight bits, from the highest: how many have each, and where the k-th lies.
// Leaves the largest number below the k-th, or 0.
__global__ void kth_of_rows(LargestArgs args) {
  __shared__ std::int32_t counts[256];
  __shared__ std::uint32_t prefix;
  __shared__ std::int64_t wanted;
  const float* h = args.h + static_cast<std::int64_t>(blockIdx.x) * args.features;
  if (threadIdx.x == 0) prefix = 0, wanted = args.k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (std::int64_t f = threadIdx.x; f < args.features; f += kThreads) {
      const std::uint32_t key = ordered(h[f] + args.bias[f]);
      if (shift == 24 || key >> (shift + 8) == prefix) atomicAdd(&counts[key >> shift & 255u], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255;
      for (; digit > 0 && counts[digit] < wanted; --digit) wanted -= counts[digit];
      prefix = prefix << 8 | static_cast<std::uint32_t>(digit);
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const float kth = from_ordered(prefix);
  args.kth[blockIdx.x] = kth > 0.0f ? nextafterf(kth, 0.0f) : 0.0f;
}

// Each block counts in its own memory first: the values lie close together, and counters of the
// whole device would be waited for.
__global__ void digits(DigitArgs args, std::int64_t values, unsigned long long* counts) {
  __shared__ unsigned own[1 << kMostDigitBits];
  for (int i = static_cast<int>(threadIdx.x); i < 1 << args.digit_bits; i += kThreads) own[i] = 0;
  __syncthreads();
  const int above = args.shift + args.digit_bits;
  const std::uint32_t mask = (1u << args.digit_bits) - 1u;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < values;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float v = args.h[i] + args.bias[i % args.features];
    if (!(v > 0.0f)) continue;
    const std::uint32_t bits = __float_as_uint(v);
    if (above < 32 && bits >> above != args.prefix) continue;
    atomicAdd(&own[bits >> args.shift & mask], 1u);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 1 << args.digit_bits; i += kThreads)
    if (own[i] != 0) atomicAdd(&counts[i], static_cast<unsigned long long>(own[i]));
}

__global__ void below(BelowArgs args) {
  const std::int64_t f = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (f >= args.features) return;
  const float theta = args.threshold != nullptr ? args.threshold[f] : 0.0f;
  double total = 0.0;
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float gap = theta - (args.h[r * args.features + f] + args.bias[f]);
    total += gap > 0.0f ? static_cast<double>(gap) : 0.0;
  }
  args.sums[f] = static_cast<float>(total);
}

__global__ void entry_gradients(EntryGradArgs args) {
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       p < args.entries; p += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float g = args.grad[p];
    const float theta = args.threshold != nullptr ? args.threshold[args.feature[p]] : 0.0f;
    const float gap = args.pre != nullptr ? args.pre[p] - theta : args.value[p];
    args.passed[p] = gap > 0.0f ? g : 0.0f;
    if (args.step == nullptr) continue;
    const bool near = gap < 0.5f * args.bandwidth && gap > -0.5f * args.bandwidth;
    args.step[p] = near ? -(theta / args.bandwidth) * g : 0.0f;
  }
}

__global__ void below_gradients(BelowGradArgs args) {
  const std::int64_t f = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (f >= args.features) return;
  std::int64_t active = 0;
  for (std::int32_t q = args.begin[f]; q < args.begin[f + 1]; ++q) {
    const bool on = args.value[args.entry[q]] > 0.0f;
    active += on ? 1 : 0;
    args.coefficient[args.entry[q]] = on ? args.grad[f] : 0.0f;
  }
  const float rest = args.grad[f] * static_cast<float>(args.rows - active);
  if (args.dbias != nullptr) args.dbias[f] -= rest;
  if (args.dthreshold != nullptr) args.dthreshold[f] += rest;
}

}  // namespace

void begin_selected(const SelectArgs& args, std::int32_t* begin) {
  if (args.rows == 0) {
    cudaMemsetAsync(begin, 0, sizeof(std::int32_t), stream());
    return;
  }
  count_rows<<<static_cast<unsigned>(args.rows), kThreads, 0, stream()>>>(args, begin);
  check_launch("count_selected");
  std::size_t bytes = 0;
  const auto items = static_cast<int>(args.rows + 1);
  cub::DeviceScan::InclusiveSum(nullptr, bytes, begin, begin, items, stream());
  const Workspace scratch(bytes);
  cub::DeviceScan::InclusiveSum(scratch.as<void>(), bytes, begin, begin, items, stream());
  check_launch("sum of rows");
}

void fill_selected(const FillArgs& args) {
  if (args.select.rows == 0) return;
  fill_rows<<<static_cast<unsigned>(args.select.rows), kThreads, 0, stream()>>>(args);
  check_launch("fill_selected");
}

void largest_of_rows(const LargestArgs& args) {
  if (args.rows == 0) return;
  kth_of_rows<<<static_cast<unsigned>(args.rows), kThreads, 0, stream()>>>(args);
  check_launch("largest_of_rows");
}

void count_digits(const DigitArgs& args) {
  static_assert(sizeof(unsigned long long) == sizeof(std::int64_t));
  const std::size_t bytes = (std::size_t{1} << args.digit_bits) * sizeof(std::int64_t);
  const Workspace memory(bytes);
  cudaMemsetAsync(memory.as<void>(), 0, bytes, stream());
  const std::int64_t values = args.rows * args.features;
  digits<<<blocks_for(values, 64 * kThreads, 1056), kThreads, 0, stream()>>>(
      args, values, memory.as<unsigned long long>());
  check_launch("count_digits");
  cudaMemcpyAsync(args.counts, memory.as<void>(), bytes, cudaMemcpyDeviceToHost, stream());
  synchronize();
}

void below_sums(const BelowArgs& args) {
  if (args.features == 0) return;
  below<<<blocks_for(args.features, kThreads, INT32_MAX), kThreads, 0, stream()>>>(args);
  check_launch("below_sums");
}

void entry_grad(const EntryGradArgs& args) {
  if (args.entries == 0) return;
  entry_gradients<<<blocks_for(args.entries, kThreads), kThreads, 0, stream()>>>(args);
  check_launch("entry_grad");
}

void below_grad(const BelowGradArgs& args) {
  if (args.features == 0) return;
  below_gradients<<<blocks_for(args.features, kThreads, INT32_MAX), kThreads, 0, stream()>>>(args);
  check_launch("below_grad");
}

}  // namespace filigree::cuda

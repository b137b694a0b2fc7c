// The bound is found digit by digit from the highest bits on: each launch counts how many values
// have each digit, and its last block to end decides on one. Counts are whole numbers, whose sums
// do not depend on timing; a warp has a row, whose entries keep their order.

#include <cub/block/block_scan.cuh>

#include "ops/sparse_encode/sparse_encode_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kDigits = 3;
constexpr int kBins = 1 << kMostDigitBits;
static_assert(kBins % kThreads == 0);

struct State {
  unsigned long long counts[kDigits][kBins];
  long long wanted;  // of those that have the prefix
  std::uint32_t prefix;
  float bound;
  unsigned ended[kDigits + 1];  // blocks of each launch
  bool decided;                 // there are fewer above 0 than are wanted
};
static_assert(sizeof(State) <= kBatchStateBytes);

__host__ __device__ constexpr int shift_of(int digit) {
  return digit == 0 ? 20 : digit == 1 ? 10 : 0;
}
__host__ __device__ constexpr int bits_of(int digit) { return digit == 0 ? 11 : 10; }

// True in the last block to get here, which then sees what all others have written.
__device__ inline bool last_block(unsigned* ended) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(ended, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// f(feature, v) for the lanes' values of a row, four of a lane where they lie so; all lanes take
// part in every call, with a feature beyond the last where there is none.
template <bool kFour, typename Function>
__device__ inline void for_values(const BatchTopKArgs& args, std::int64_t r, int lane,
                                  const Function& function) {
  constexpr int kVector = kFour ? 4 : 1;
  const int features = static_cast<int>(args.features);
  const float* h = args.h + r * args.features;
#pragma unroll 4
  for (int first = 0; first < features; first += 32 * kVector) {
    const int f = first + lane * kVector;
    float v[kVector] = {};
    if (f < features) {
      if constexpr (kFour) {
        const float4 x = *reinterpret_cast<const float4*>(h + f);
        const float4 b = __ldg(reinterpret_cast<const float4*>(args.bias + f));
        v[0] = x.x + b.x, v[1] = x.y + b.y, v[2] = x.z + b.z, v[3] = x.w + b.w;
      } else {
        v[0] = h[f] + args.bias[f];
      }
    }
    function(f, v);
  }
}

// Where among the digits, from the highest down, `wanted` are reached.
__device__ inline void decide(const BatchTopKArgs& args, State& state, int digit) {
  using Scan = cub::BlockScan<long long, kThreads>;
  __shared__ typename Scan::TempStorage memory;
  constexpr int kEach = kBins / kThreads;
  const int bins = 1 << bits_of(digit);
  const long long wanted = digit == 0 ? args.wanted : state.wanted;
  long long counts[kEach], own = 0, above = 0, all = 0;
  // Thread 0 has the highest.
  for (int i = 0; i < kEach; ++i) {
    const int bin = bins - 1 - (static_cast<int>(threadIdx.x) * kEach + i);
    counts[i] = bin >= 0 ? static_cast<long long>(__ldcg(&state.counts[digit][bin])) : 0;
    own += counts[i];
  }
  Scan(memory).ExclusiveSum(own, above, all);
  if (all < wanted) {
    if (threadIdx.x == 0) state.decided = true;  // the bound is 0
    return;
  }
  if (above >= wanted || above + own < wanted) return;
  int i = 0;
  for (; above + counts[i] < wanted; ++i) above += counts[i];
  const int bin = bins - 1 - (static_cast<int>(threadIdx.x) * kEach + i);
  const std::uint32_t prefix = state.prefix << bits_of(digit) | static_cast<std::uint32_t>(bin);
  state.prefix = prefix;
  state.wanted = wanted - above;
  if (digit + 1 < kDigits) return;
  // Those that are equal to the last of the wanted pass too, if there is room.
  const long long passing = args.wanted - (wanted - above) + counts[i];
  const float kth = __uint_as_float(prefix);
  state.bound = passing <= args.room ? nextafterf(kth, 0.0f) : kth;
}

// Each block counts in its own memory first: the values lie close together, and counters of the
// whole device would be waited for.
template <bool kFour>
__global__ void count_digit(BatchTopKArgs args, int digit) {
  __shared__ unsigned own[kBins];
  State& state = *static_cast<State*>(args.state);
  if (digit > 0 && state.decided) return;
  const std::uint32_t prefix = state.prefix;
  const int shift = shift_of(digit), above = shift + bits_of(digit);
  const std::uint32_t mask = (1u << bits_of(digit)) - 1u;
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) own[i] = 0;
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp; r < args.rows;
       r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    for_values<kFour>(args, r, lane, [&](int, const auto& values) {
      for (const float v : values) {
        if (!(v > 0.0f)) continue;
        const std::uint32_t key = __float_as_uint(v);
        if (digit > 0 && key >> above != prefix) continue;
        atomicAdd(&own[key >> shift & mask], 1u);
      }
    });
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i <= static_cast<int>(mask); i += kThreads)
    if (own[i] != 0) atomicAdd(&state.counts[digit][i], static_cast<unsigned long long>(own[i]));
  if (last_block(&state.ended[digit])) decide(args, state, digit);
}

// How many pass in each row, and by the last block where each row begins.
template <bool kFour>
__global__ void place_rows(BatchTopKArgs args) {
  using Scan = cub::BlockScan<std::int32_t, kThreads>;
  __shared__ typename Scan::TempStorage memory;
  State& state = *static_cast<State*>(args.state);
  const float bound = state.decided ? 0.0f : state.bound;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp;
  if (r < args.rows) {
    const int features = static_cast<int>(args.features);
    std::int32_t count = 0;
    for_values<kFour>(args, r, lane, [&](int f, const auto& values) {
      for (const float v : values) count += f < features && v > bound ? 1 : 0;
    });
    count = warp_sum(count);
    if (lane == 0) args.begin[r + 1] = count;
  }
  if (!last_block(&state.ended[kDigits])) return;
  if (threadIdx.x == 0) args.begin[0] = 0;
  const std::int64_t each = (args.rows + kThreads - 1) / kThreads;
  const std::int64_t first = 1 + static_cast<std::int64_t>(threadIdx.x) * each;
  const std::int64_t end = first + each < args.rows + 1 ? first + each : args.rows + 1;
  std::int32_t own = 0, before = 0;
  for (std::int64_t i = first; i < end; ++i) own += __ldcg(&args.begin[i]);
  Scan(memory).ExclusiveSum(own, before);
  for (std::int64_t i = first; i < end; ++i) {
    before += __ldcg(&args.begin[i]);
    args.begin[i] = before;
  }
}

template <bool kFour>
__global__ void fill_rows(BatchTopKArgs args) {
  const State& state = *static_cast<const State*>(args.state);
  const float bound = state.decided ? 0.0f : state.bound;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp;
  if (r >= args.rows) return;
  const int features = static_cast<int>(args.features);
  const unsigned lanes_before = (1u << lane) - 1u;
  std::int32_t place = args.begin[r];
  for_values<kFour>(args, r, lane, [&](int f, const auto& values) {
    constexpr int kVector = sizeof(values) / sizeof(float);
    std::int32_t before = 0, own = 0, all = 0;
    for (int k = 0; k < kVector; ++k) {
      const unsigned passing = __ballot_sync(0xFFFFFFFFu, f < features && values[k] > bound);
      before += __popc(passing & lanes_before);
      all += __popc(passing);
    }
    for (int k = 0; k < kVector; ++k) {
      if (f >= features || !(values[k] > bound)) continue;
      const std::int32_t p = place + before + own;
      const std::int64_t of_all = args.layer * args.room + p;
      args.feature[p] = f + k;
      args.value[p] = values[k];
      args.group[of_all] = static_cast<std::int32_t>(args.layer * args.features) + f + k;
      args.number[of_all] = static_cast<std::int32_t>(of_all);
      args.row_of[of_all] = static_cast<std::int32_t>(r);
      ++own;
    }
    place += all;
  });
}

template <bool kFour>
void launch(const BatchTopKArgs& args) {
  const unsigned counting = blocks_for(args.rows, kWarps, 8 * multiprocessors());
  for (int digit = 0; digit < kDigits; ++digit) {
    count_digit<kFour><<<counting, kThreads, 0, stream()>>>(args, digit);
    check_launch("count_digit");
  }
  const unsigned blocks = blocks_for(args.rows, kWarps, INT32_MAX);
  place_rows<kFour><<<blocks, kThreads, 0, stream()>>>(args);
  check_launch("place_rows");
  fill_rows<kFour><<<blocks, kThreads, 0, stream()>>>(args);
  check_launch("fill_rows");
}

}  // namespace

void no_groups(std::int32_t* group, std::int64_t entries) {
  cudaMemsetAsync(group, 0xFF, static_cast<std::size_t>(entries) * sizeof(std::int32_t), stream());
  check_launch("no_groups");
}

void batch_top_k(const BatchTopKArgs& args) {
  if (args.rows == 0) return;
  const bool four = wide_rows(args.h, args.features) && wide_rows(args.bias, args.features);
  four ? launch<true>(args) : launch<false>(args);
}

}  // namespace filigree::cuda

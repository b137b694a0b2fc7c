// A thread turns one group of pairs, 16 bytes of each half where rows are aligned, or copies a
// group of what is not turned.

#include "ops/rotary/rotary_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Elements {
  T values[kCount];
};

// All extents in groups of kCount.
template <typename T, int kCount>
__global__ void rotary_each(RotaryArgs<T> args) {
  using Group = Elements<T, kCount>;
  const std::int64_t pairs = args.pairs / kCount, width = args.width / kCount;
  const std::int64_t a_head = width - pairs;  // groups of pairs, then of what is copied
  const std::int64_t count = args.rows * args.heads * a_head;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const std::int64_t head = i / a_head, g = i % a_head;
    const Group* x = reinterpret_cast<const Group*>(args.x) + head * width;
    Group* y = reinterpret_cast<Group*>(args.y) + head * width;
    if (g >= pairs) {
      y[pairs + g] = x[pairs + g];
      continue;
    }
    const std::int64_t at = head / args.heads % args.positions * args.pairs + g * kCount;
    const Group first = x[g], second = x[g + pairs];
    Group low, high;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float cos = args.cos[at + k], sin = args.back ? -args.sin[at + k] : args.sin[at + k];
      const float a = to_float(first.values[k]), b = to_float(second.values[k]);
      low.values[k] = from_float<T>(a * cos - b * sin);
      high.values[k] = from_float<T>(b * cos + a * sin);
    }
    y[g] = low;
    y[g + pairs] = high;
  }
}

}  // namespace

template <typename T>
void rotary(const RotaryArgs<T>& args) {
  const std::int64_t count = args.rows * args.heads * (args.width - args.pairs);
  if (count == 0) return;
  const bool wide =
      wide_rows(args.x, args.width) && wide_rows(args.y, args.width) && args.pairs % kWide<T> == 0;
  if (wide)
    rotary_each<T, kWide<T>>
        <<<blocks_for(count / kWide<T>, kThreads), kThreads, 0, stream()>>>(args);
  else
    rotary_each<T, 1><<<blocks_for(count, kThreads), kThreads, 0, stream()>>>(args);
  check_launch("rotary");
}

template void rotary(const RotaryArgs<float>&);
template void rotary(const RotaryArgs<Bf16>&);

}  // namespace filigree::cuda

// The gradient has one thread a column of an id's row: it adds the rows of equal ids in the order
// they occur, so no sum depends on timing.

#include "ops/embedding/embedding_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kAhead = 8;  // rows loaded before they are added

template <typename From, typename To>
__global__ void gather(RowsArgs<From, To> args) {
  const std::int64_t place = blockIdx.x;
  const From* from = args.from + static_cast<std::int64_t>(args.ids[place]) * args.width;
  To* to = args.to + place * args.width;
  for (std::int64_t c = threadIdx.x; c < args.width; c += kThreads)
    to[c] = from_float<To>(to_float(from[c]));
}

template <typename T>
__global__ void add_segments(SortedRowsArgs<T> args) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (column >= args.width) return;
  const std::int64_t begin = args.begins[blockIdx.x], end = args.begins[blockIdx.x + 1];
  float total = 0.0f;
  std::int64_t i = begin;
  for (; i + kAhead <= end; i += kAhead) {
    float values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      values[k] = to_float(args.from[args.order[i + k] * args.width + column]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) total += values[k];
  }
  for (; i < end; ++i) total += to_float(args.from[args.order[i] * args.width + column]);
  args.to[args.ids[blockIdx.x] * args.width + column] += total;
}

template <typename T>
__global__ void scaled(const __grid_constant__ ScaledRowsArgs<T> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= args.count * args.width) return;
  std::int64_t row = 0;
  if (args.count * args.width <= INT32_MAX)  // divides in a third of the time
    row = static_cast<std::int32_t>(i) / static_cast<std::int32_t>(args.width);
  else
    row = i / args.width;
  const std::int32_t id = args.ids[row];
  const std::int64_t column = i - row * args.width;
  const float value =
      id < 0 ? 0.0f : args.factor[blockIdx.y] * args.table[blockIdx.y][id * args.width + column];
  args.to[blockIdx.y * args.count * args.width + i] = from_float<T>(value);
}

}  // namespace

template <typename T>
void scaled_rows(const ScaledRowsArgs<T>& args) {
  if (args.count == 0 || args.width == 0) return;
  const dim3 grid(blocks_for(args.count * args.width, kThreads, INT32_MAX),
                  static_cast<unsigned>(args.tables));
  scaled<<<grid, kThreads, 0, stream()>>>(args);
  check_launch("scaled_rows");
}

template <typename From, typename To>
void gather_rows(const RowsArgs<From, To>& args) {
  if (args.count == 0 || args.width == 0) return;
  gather<<<static_cast<unsigned>(args.count), kThreads, 0, stream()>>>(args);
  check_launch("gather_rows");
}

template <typename T>
void add_sorted_rows(const SortedRowsArgs<T>& args) {
  if (args.segments == 0 || args.width == 0) return;
  const dim3 grid(static_cast<unsigned>(args.segments), blocks_for(args.width, kThreads, 65535));
  add_segments<<<grid, kThreads, 0, stream()>>>(args);
  check_launch("add_sorted_rows");
}

template void scaled_rows(const ScaledRowsArgs<float>&);
template void scaled_rows(const ScaledRowsArgs<Bf16>&);
template void gather_rows(const RowsArgs<float, float>&);
template void gather_rows(const RowsArgs<float, Bf16>&);
template void gather_rows(const RowsArgs<Bf16, float>&);
template void gather_rows(const RowsArgs<Bf16, Bf16>&);
template void add_sorted_rows(const SortedRowsArgs<float>&);
template void add_sorted_rows(const SortedRowsArgs<Bf16>&);

}  // namespace filigree::cuda

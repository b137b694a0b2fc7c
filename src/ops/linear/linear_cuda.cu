#include "filigree/ops/linear/linear_kernels.h"
#include "filigree/runtime/cuda/device_cuda.cuh"
#include "filigree/runtime/cuda/launch_cuda.h"
#include "filigree/runtime/cuda/sum_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void gelu_grad_each(GeluGradArgs<T> args, bool aligned) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t vectors = aligned ? args.count / kWide<T> : 0;
  for (std::int64_t v = thread; v < vectors; v += threads) {
    const Wide<T> pre = reinterpret_cast<const Wide<T>*>(args.pre)[v];
    Wide<T> grad = reinterpret_cast<const Wide<T>*>(args.grad)[v];
#pragma unroll
    for (int k = 0; k < kWide<T>; ++k)
      grad.values[k] =
          from_float<T>(to_float(grad.values[k]) * gelu_slope(to_float(pre.values[k])));
    reinterpret_cast<Wide<T>*>(args.out)[v] = grad;
  }
  for (std::int64_t i = vectors * kWide<T> + thread; i < args.count; i += threads)
    args.out[i] = from_float<T>(to_float(args.grad[i]) * gelu_slope(to_float(args.pre[i])));
}

}  // namespace

template <typename T>
void add_column_sums(const ColumnSumArgs<T>& args) {
  if (args.rows == 0) return;
  sum_axis(1, args.rows, args.cols, 1.0, args.x, args.sums, true);
}

template <typename T>
void gelu_grad(const GeluGradArgs<T>& args) {
  if (args.count == 0) return;
  const auto at = [](const T* data) { return reinterpret_cast<std::uintptr_t>(data) % 16; };
  const bool aligned = at(args.pre) == 0 && at(args.grad) == 0 && at(args.out) == 0;
  gelu_grad_each<<<blocks_for(args.count, kThreads * kWide<T>), kThreads, 0, stream()>>>(args,
                                                                                         aligned);
  check_launch("gelu_grad");
}

template void add_column_sums(const ColumnSumArgs<float>&);
template void add_column_sums(const ColumnSumArgs<Bf16>&);
template void gelu_grad(const GeluGradArgs<float>&);
template void gelu_grad(const GeluGradArgs<Bf16>&);

}  // namespace filigree::cuda

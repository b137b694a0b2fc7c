// A block a row.

#include "ops/softmax/softmax_kernels.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/rows_cuda.cuh"

namespace filigree::cuda {
namespace {

template <typename T>
__global__ void softmax_rows(SoftmaxArgs<T> args) {
  __shared__ float shared[32];
  const T* x = args.x + static_cast<std::int64_t>(blockIdx.x) * args.width;
  T* y = args.y + static_cast<std::int64_t>(blockIdx.x) * args.width;
  const Exponentials e = sum_of_exponentials(x, args.width, shared);
  if (e.maximum == -INFINITY && e.sum == 0.0f) {  // all masked
    map_rows(x, x, y, args.width,
             [&](std::int64_t, float value, float) { return args.logarithm ? value : 0.0f; });
    return;
  }
  const float log_sum = e.maximum + logf(e.sum), inverse = 1.0f / e.sum;
  map_rows(x, x, y, args.width, [&](std::int64_t, float value, float) {
    return args.logarithm ? value - log_sum : expf(value - e.maximum) * inverse;
  });
}

template <typename T>
__global__ void softmax_grad_rows(SoftmaxGradArgs<T> args) {
  __shared__ double shared[32];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * args.width;
  const T* y = args.y + begin;
  const T* dy = args.dy + begin;
  double total = 0.0;
  for (std::int64_t c = threadIdx.x; c < args.width; c += blockDim.x)
    total += static_cast<double>(to_float(dy[c])) *
             (args.logarithm ? 1.0 : static_cast<double>(to_float(y[c])));
  const float sum = static_cast<float>(block_sum(total, shared));
  map_rows(y, dy, args.dx + begin, args.width, [&](std::int64_t, float value, float gradient) {
    return args.logarithm ? gradient - expf(value) * sum : value * (gradient - sum);
  });
}

}  // namespace

template <typename T>
void softmax(const SoftmaxArgs<T>& args) {
  if (args.rows == 0) return;
  softmax_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0, stream()>>>(args);
  check_launch("softmax");
}

template <typename T>
void softmax_grad(const SoftmaxGradArgs<T>& args) {
  if (args.rows == 0) return;
  softmax_grad_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0, stream()>>>(
      args);
  check_launch("softmax_grad");
}

template void softmax(const SoftmaxArgs<float>&);
template void softmax(const SoftmaxArgs<Bf16>&);
template void softmax_grad(const SoftmaxGradArgs<float>&);
template void softmax_grad(const SoftmaxGradArgs<Bf16>&);

}  // namespace filigree::cuda

// A block a row of logits, read once; the gradient is written element by element, also over the
// logits themselves.

#include "ops/cross_entropy/cross_entropy_kernels.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/rows_cuda.cuh"

namespace filigree::cuda {
namespace {

template <typename T>
__global__ void cross_entropy_rows(CrossEntropyArgs<T> args) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x;
  const T* logits = args.logits + row * args.width;
  const Exponentials e = sum_of_exponentials(logits, args.width, shared);
  if (threadIdx.x != 0) return;
  const std::int32_t target = args.targets[row];
  args.log_sum_exp[row] = e.maximum + logf(e.sum);
  args.losses[row] = target < 0 ? 0.0f : logf(e.sum) - (to_float(logits[target]) - e.maximum);
}

template <typename T>
__global__ void cross_entropy_grad_rows(CrossEntropyGradArgs<T> args) {
  const std::int64_t row = blockIdx.x;
  const T* logits = args.logits + row * args.width;
  T* dlogits = args.dlogits + row * args.width;
  const std::int32_t target = args.targets[row];
  const float factor = args.upstream != nullptr ? args.factor * *args.upstream : args.factor;
  const float lse = args.log_sum_exp[row];
  map_rows(logits, logits, dlogits, args.width, [&](std::int64_t c, float value, float) {
    if (target < 0) return 0.0f;
    const float probability = expf(value - lse);
    return (c == target ? probability - 1.0f : probability) * factor;
  });
}

}  // namespace

template <typename T>
void cross_entropy(const CrossEntropyArgs<T>& args) {
  if (args.rows == 0) return;
  cross_entropy_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0, stream()>>>(
      args);
  check_launch("cross_entropy");
}

template <typename T>
void cross_entropy_grad(const CrossEntropyGradArgs<T>& args) {
  if (args.rows == 0) return;
  cross_entropy_grad_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0,
                            stream()>>>(args);
  check_launch("cross_entropy_grad");
}

template void cross_entropy(const CrossEntropyArgs<float>&);
template void cross_entropy(const CrossEntropyArgs<Bf16>&);
template void cross_entropy_grad(const CrossEntropyGradArgs<float>&);
template void cross_entropy_grad(const CrossEntropyGradArgs<Bf16>&);

}  // namespace filigree::cuda

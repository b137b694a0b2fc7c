#include "ops/reduce/reduce_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/rows_cuda.cuh"
#include "runtime/cuda/sum_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void spread_each(SpreadArgs<T> args) {
  const std::int64_t all = args.outer * args.extent * args.inner;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < all;
       i += threads) {
    const std::int64_t o = i / (args.extent * args.inner);
    args.dx[i] = from_float<T>(to_float(args.grad[o * args.inner + i % args.inner]) * args.factor);
  }
}

struct Candidate {
  float value;
  std::int64_t place;  // negative: none

  // The larger, of equal ones the first.
  __device__ bool before(const Candidate& other) const {
    if (other.place < 0) return place >= 0;
    if (place < 0) return false;
    return value > other.value || (value == other.value && place < other.place);
  }
};

// A block a result: threads look at places apart, then their candidates are compared.
template <typename T>
__global__ void maximum_each(MaximumArgs<T> args) {
  __shared__ Candidate candidates[kThreads];
  const std::int64_t i = blockIdx.x;
  const T* from = args.x + i / args.inner * args.extent * args.inner + i % args.inner;
  Candidate best{0.0f, -1};
  for (std::int64_t k = threadIdx.x; k < args.extent; k += blockDim.x) {
    const Candidate here{to_float(from[k * args.inner]), k};
    if (here.before(best)) best = here;
  }
  candidates[threadIdx.x] = best;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && candidates[threadIdx.x + half].before(candidates[threadIdx.x]))
      candidates[threadIdx.x] = candidates[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  // A row of nothing but NaN has no largest: its first element stands for it, as on the CPU.
  const std::int64_t place = candidates[0].place < 0 ? 0 : candidates[0].place;
  if (args.values != nullptr) args.values[i] = from[place * args.inner];
  args.places[i] = static_cast<std::int32_t>(place);
}

template <typename T>
__global__ void maximum_grad_each(MaximumGradArgs<T> args) {
  const std::int64_t all = args.outer * args.inner;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= all) return;
  args.dx[i / args.inner * args.extent * args.inner + args.places[i] * args.inner +
          i % args.inner] = args.grad[i];
}

}  // namespace

template <typename T, typename Out>
void sum(const SumArgs<T, Out>& args) {
  sum_axis(args.outer, args.extent, args.inner, args.factor, args.x, args.sums);
}

template <typename T>
void spread(const SpreadArgs<T>& args) {
  const std::int64_t all = args.outer * args.extent * args.inner;
  if (all == 0) return;
  spread_each<<<blocks_for(all, kThreads * 4), kThreads, 0, stream()>>>(args);
  check_launch("spread");
}

template <typename T>
void maximum(const MaximumArgs<T>& args) {
  const std::int64_t all = args.outer * args.inner;
  if (all == 0) return;
  maximum_each<<<static_cast<unsigned>(all), row_threads(args.extent, kThreads), 0, stream()>>>(
      args);
  check_launch("maximum");
}

template <typename T>
void maximum_grad(const MaximumGradArgs<T>& args) {
  const std::int64_t all = args.outer * args.inner;
  if (all == 0) return;
  maximum_grad_each<<<blocks_for(all, kThreads, INT32_MAX), kThreads, 0, stream()>>>(args);
  check_launch("maximum_grad");
}

template void sum(const SumArgs<float, float>&);
template void sum(const SumArgs<Bf16, Bf16>&);
template void sum(const SumArgs<Bf16, float>&);
template void spread(const SpreadArgs<float>&);
template void spread(const SpreadArgs<Bf16>&);
template void maximum(const MaximumArgs<float>&);
template void maximum(const MaximumArgs<Bf16>&);
template void maximum_grad(const MaximumGradArgs<float>&);
template void maximum_grad(const MaximumGradArgs<Bf16>&);

}  // namespace filigree::cuda

#include "ops/optimizer/optimizer_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/memory_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerBlock = kThreads * 64;  // squares a block sums

__global__ void adamw_each(AdamWArgs args) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < args.count; i += threads) {
    const float gradient = args.gradient[i] * args.gradient_scale;
    const float first = args.beta1 * args.first[i] + (1.0f - args.beta1) * gradient;
    const float second = args.beta2 * args.second[i] + (1.0f - args.beta2) * gradient * gradient;
    args.first[i] = first;
    args.second[i] = second;
    const float weight =
        args.weight[i] * args.decay -
        args.step_size * first / (sqrtf(second) * args.second_scale + args.epsilon);
    args.weight[i] = weight;
    if (args.copy != nullptr) args.copy[i] = from_float<Bf16>(weight);
  }
}

__global__ void square_pieces(SquaresArgs args, double* partial) {
  __shared__ double shared[kThreads / 32];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kPerBlock;
  const std::int64_t end = begin + kPerBlock < args.count ? begin + kPerBlock : args.count;
  double total = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    total += static_cast<double>(args.x[i]) * static_cast<double>(args.x[i]);
  total = block_sum(total, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void sum_pieces(std::int64_t count, const double* partial, double* result) {
  __shared__ double shared[32];
  double total = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) total += partial[i];
  total = block_sum(total, shared);
  if (threadIdx.x == 0) *result = total;
}

}  // namespace

void adamw(const AdamWArgs& args) {
  if (args.count == 0) return;
  adamw_each<<<blocks_for(args.count, kThreads * 4), kThreads, 0, stream()>>>(args);
  check_launch("adamw");
}

double sum_of_squares(const SquaresArgs* arrays, std::int64_t count) {
  std::int64_t pieces = 0;
  for (std::int64_t a = 0; a < count; ++a) pieces += (arrays[a].count + kPerBlock - 1) / kPerBlock;
  const Workspace workspace(static_cast<std::size_t>(pieces + 1) * sizeof(double));
  double* result = workspace.as<double>();
  double* partial = result + 1;
  for (std::int64_t a = 0; a < count; ++a) {
    if (arrays[a].count == 0) continue;
    const unsigned blocks = blocks_for(arrays[a].count, kPerBlock, INT32_MAX);
    square_pieces<<<blocks, kThreads, 0, stream()>>>(arrays[a], partial);
    check_launch("sum_of_squares");
    partial += blocks;
  }
  sum_pieces<<<1, 1024, 0, stream()>>>(pieces, result + 1, result);
  check_launch("sum_of_squares");
  double total = 0.0;
  copy_to_host(reinterpret_cast<std::byte*>(&total), reinterpret_cast<const std::byte*>(result),
               sizeof(total));
  return total;
}

}  // namespace filigree::cuda

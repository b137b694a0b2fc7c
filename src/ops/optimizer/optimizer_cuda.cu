#include "ops/optimizer/optimizer_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/memory_cuda.h"
#include "runtime/cuda/together_cuda.cuh"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kSquaresPerBlock = kThreads * 64, kStepsPerBlock = kThreads * 16;

using Steps = Together<AdamWArgs, 40>;
using Squares = Together<SquaresArgs, 180>;

__device__ inline void step_one(const AdamWArgs& args, float gradient, float& weight, float& first,
                                float& second) {
  gradient *= args.gradient_scale;
  first = args.beta1 * first + (1.0f - args.beta1) * gradient;
  second = args.beta2 * second + (1.0f - args.beta2) * gradient * gradient;
  weight = weight * args.decay -
           args.step_size * first / (sqrtf(second) * args.second_scale + args.epsilon);
}

__device__ inline bool at_16_bytes(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

__global__ void adamw_each(const __grid_constant__ Steps steps) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = steps.array_of(block);
  const AdamWArgs& args = steps.arrays[array];
  std::int64_t begin = (block - steps.first[array]) * kStepsPerBlock;
  const std::int64_t end =
      begin + kStepsPerBlock < args.count ? begin + kStepsPerBlock : args.count;
  using Four = Wide<float>;
  constexpr int kFour = kWide<float>;
  if (at_16_bytes(args.gradient) && at_16_bytes(args.weight) && at_16_bytes(args.first) &&
      at_16_bytes(args.second) && at_16_bytes(args.copy)) {
    const std::int64_t whole = begin + (end - begin) / kFour * kFour;
#pragma unroll 2
    for (std::int64_t i = begin + kFour * threadIdx.x; i < whole; i += kFour * kThreads) {
      const Four gradient = *reinterpret_cast<const Four*>(args.gradient + i);
      Four weight = *reinterpret_cast<const Four*>(args.weight + i);
      Four first = *reinterpret_cast<const Four*>(args.first + i);
      Four second = *reinterpret_cast<const Four*>(args.second + i);
      Bf16 rounded[kFour];
#pragma unroll
      for (int k = 0; k < kFour; ++k) {
        step_one(args, gradient.values[k], weight.values[k], first.values[k], second.values[k]);
        rounded[k] = from_float<Bf16>(weight.values[k]);
      }
      *reinterpret_cast<Four*>(args.weight + i) = weight;
      *reinterpret_cast<Four*>(args.first + i) = first;
      *reinterpret_cast<Four*>(args.second + i) = second;
      if (args.copy != nullptr)
        *reinterpret_cast<uint2*>(args.copy + i) =
            make_uint2(rounded[0].bits | static_cast<std::uint32_t>(rounded[1].bits) << 16,
                       rounded[2].bits | static_cast<std::uint32_t>(rounded[3].bits) << 16);
    }
    begin = whole;
  }
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    step_one(args, args.gradient[i], args.weight[i], args.first[i], args.second[i]);
    if (args.copy != nullptr) args.copy[i] = from_float<Bf16>(args.weight[i]);
  }
}

__global__ void square_pieces(const __grid_constant__ Squares squares, double* partial) {
  __shared__ double shared[kThreads / 32];
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = squares.array_of(block);
  const SquaresArgs& args = squares.arrays[array];
  const std::int64_t begin = (block - squares.first[array]) * kSquaresPerBlock;
  const std::int64_t end =
      begin + kSquaresPerBlock < args.count ? begin + kSquaresPerBlock : args.count;
  double total = 0.0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    total += static_cast<double>(args.x[i]) * static_cast<double>(args.x[i]);
  total = block_sum(total, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// Blocks for an array at so many elements a block.
auto blocks_at(std::int64_t per_block) {
  return [per_block](const auto& array) { return (array.count + per_block - 1) / per_block; };
}

__global__ void sum_pieces(std::int64_t count, const double* partial, double* result) {
  __shared__ double shared[32];
  double total = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) total += partial[i];
  total = block_sum(total, shared);
  if (threadIdx.x == 0) *result = total;
}

}  // namespace

void adamw(const AdamWArgs* arrays, std::int64_t count) {
  in_batches<Steps>(arrays, count, blocks_at(kStepsPerBlock),
                    [](const Steps& steps, unsigned blocks) {
                      adamw_each<<<blocks, kThreads, 0, stream()>>>(steps);
                      check_launch("adamw");
                    });
}

double sum_of_squares(const SquaresArgs* arrays, std::int64_t count) {
  std::int64_t pieces = 0;
  for (std::int64_t a = 0; a < count; ++a)
    pieces += (arrays[a].count + kSquaresPerBlock - 1) / kSquaresPerBlock;
  const Workspace workspace(static_cast<std::size_t>(pieces + 1) * sizeof(double));
  double* result = workspace.as<double>();
  double* partial = result + 1;
  in_batches<Squares>(arrays, count, blocks_at(kSquaresPerBlock),
                      [&](const Squares& squares, unsigned blocks) {
                        square_pieces<<<blocks, kThreads, 0, stream()>>>(squares, partial);
                        check_launch("sum_of_squares");
                        partial += blocks;
                      });
  sum_pieces<<<1, 1024, 0, stream()>>>(pieces, result + 1, result);
  check_launch("sum_of_squares");
  double total = 0.0;
  copy_to_host(reinterpret_cast<std::byte*>(&total), reinterpret_cast<const std::byte*>(result),
               sizeof(total));
  return total;
}

}  // namespace filigree::cuda

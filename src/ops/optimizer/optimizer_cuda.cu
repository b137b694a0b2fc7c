#include "filigree/ops/optimizer/optimizer_kernels.h"
#include "filigree/runtime/cuda/device_cuda.cuh"
#include "filigree/runtime/cuda/launch_cuda.h"
#include "filigree/runtime/cuda/memory_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kSquaresPerBlock = kThreads * 64, kStepsPerBlock = kThreads * 16;

// Many arrays in one launch, as a kernel's argument: blocks first[a] to first[a + 1] work on array
// a. A model has hundreds of small arrays, whose launches would take longer than their work.
template <typename Array, int kMost>
struct Together {
  static constexpr int kRoom = kMost;
  Array arrays[kMost];
  std::int32_t first[kMost + 1] = {};
  int count = 0;

  void add(const Array& array, std::int64_t per_block) {
    arrays[count] = array;
    first[count + 1] =
        first[count] + static_cast<std::int32_t>((array.count + per_block - 1) / per_block);
    ++count;
  }
  __device__ int array_of(std::int32_t block) const {
    int array = 0;
    while (first[array + 1] <= block) ++array;
    return array;
  }
};
// An argument has 4096 bytes.
using Steps = Together<AdamWArgs, 40>;
using Squares = Together<SquaresArgs, 180>;
static_assert(sizeof(Steps) <= 4000 && sizeof(Squares) <= 4000);

__global__ void adamw_each(const __grid_constant__ Steps steps) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int array = steps.array_of(block);
  const AdamWArgs& args = steps.arrays[array];
  const std::int64_t begin = (block - steps.first[array]) * kStepsPerBlock;
  const std::int64_t end =
      begin + kStepsPerBlock < args.count ? begin + kStepsPerBlock : args.count;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
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

// Calls launch(batch, blocks) for the arrays that are not empty, many at a time.
template <typename Batch, typename Array, typename Launch>
void in_batches(const Array* arrays, std::int64_t count, std::int64_t per_block,
                const Launch& launch) {
  Batch batch;
  for (std::int64_t a = 0; a < count; ++a) {
    if (arrays[a].count > 0) batch.add(arrays[a], per_block);
    if (batch.count == 0 || (a + 1 < count && batch.count < Batch::kRoom)) continue;
    launch(batch, static_cast<unsigned>(batch.first[batch.count]));
    batch.count = 0;
  }
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
  in_batches<Steps>(arrays, count, kStepsPerBlock, [](const Steps& steps, unsigned blocks) {
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
  in_batches<Squares>(arrays, count, kSquaresPerBlock,
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

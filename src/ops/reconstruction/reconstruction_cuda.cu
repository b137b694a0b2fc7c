// Sums over rows in two stages, in an order that depends on the extents alone: blocks of rows in
// f32, then one block a layer in double precision.

#include "ops/reconstruction/reconstruction_kernels.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/map_cuda.cuh"

namespace filigree::cuda {
namespace {

constexpr int kRows = 64;  // of a block
constexpr unsigned kMostThreads = 256;

// What a block leaves: of each column two sums, of all its columns two sums of squares.
struct Partial {
  float* difference;  // [layers, blocks, width]
  float* target;
  double* squares;  // [layers, blocks, 2]
};

__global__ void differences(ReconstructionArgs args, Partial partial) {
  __shared__ double shared[32];
  const std::int64_t layer = blockIdx.y, block = blockIdx.x;
  const std::int64_t first = block * kRows;
  const std::int64_t end = first + kRows < args.rows ? first + kRows : args.rows;
  double left = 0.0, there = 0.0;
  for (std::int64_t c = threadIdx.x; c < args.width; c += blockDim.x) {
    const float bias = args.bias != nullptr ? args.bias[layer * args.width + c] : 0.0f;
    float sum = 0.0f, sum_of_targets = 0.0f, square = 0.0f, square_of_targets = 0.0f;
#pragma unroll 8
    for (std::int64_t r = first; r < end; ++r) {
      const std::int64_t i = (layer * args.rows + r) * args.width + c;
      const float target = args.targets[i];
      const float difference = args.written[i] + bias - target;
      args.difference[i] = difference;
      sum += difference;
      square += difference * difference;
      sum_of_targets += target;
      square_of_targets += target * target;
    }
    const std::int64_t at = (layer * gridDim.x + block) * args.width + c;
    partial.difference[at] = sum;
    partial.target[at] = sum_of_targets;
    left += static_cast<double>(square);
    there += static_cast<double>(square_of_targets);
  }
  left = block_sum(left, shared);
  there = block_sum(there, shared);
  if (threadIdx.x != 0) return;
  partial.squares[2 * (layer * gridDim.x + block)] = left;
  partial.squares[2 * (layer * gridDim.x + block) + 1] = there;
}

__global__ void sum_blocks(ReconstructionArgs args, Partial partial, std::int64_t blocks) {
  __shared__ double shared[32];
  const std::int64_t layer = blockIdx.x;
  double left = 0.0, there = 0.0;
  for (std::int64_t b = threadIdx.x; b < blocks; b += blockDim.x) {
    left += partial.squares[2 * (layer * blocks + b)];
    there += partial.squares[2 * (layer * blocks + b) + 1];
  }
  for (std::int64_t c = threadIdx.x; c < args.width; c += blockDim.x) {
    double sum = 0.0, sum_of_targets = 0.0;
#pragma unroll 8
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t at = (layer * blocks + b) * args.width + c;
      sum += static_cast<double>(partial.difference[at]);
      sum_of_targets += static_cast<double>(partial.target[at]);
    }
    args.column_sums[layer * args.width + c] = static_cast<float>(sum);
    // About the mean.
    there -= sum_of_targets * sum_of_targets / static_cast<double>(args.rows);
  }
  left = block_sum(left, shared);
  there = block_sum(there, shared);
  if (threadIdx.x != 0) return;
  args.squares[layer] = static_cast<float>(left);
  args.squares[args.layers + layer] = there > 0.0 ? static_cast<float>(there) : 0.0f;
}

struct Scale {
  float factor;
  const float* grad;
  __device__ float operator()(float x, float, float) const { return 2.0f * factor * *grad * x; }
};

}  // namespace

void reconstruction(const ReconstructionArgs& args) {
  const std::int64_t blocks = (args.rows + kRows - 1) / kRows;
  const auto numbers = static_cast<std::size_t>(args.layers * blocks);
  const auto columns = numbers * static_cast<std::size_t>(args.width);
  const Workspace memory(2 * numbers * sizeof(double) + 2 * columns * sizeof(float));
  auto* squares = memory.as<double>();
  auto* sums = reinterpret_cast<float*>(squares + 2 * numbers);
  const Partial partial{sums, sums + columns, squares};
  unsigned threads = 32;
  while (threads < kMostThreads && threads < args.width) threads += 32;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(args.layers));
  differences<<<grid, threads, 0, stream()>>>(args, partial);
  check_launch("reconstruction");
  sum_blocks<<<static_cast<unsigned>(args.layers), 512, 0, stream()>>>(args, partial, blocks);
  check_launch("reconstruction");
}

void error_grad(const ErrorGradArgs& args) {
  map("error_grad", args.count, args.from, args.from, args.from, args.to,
      Scale{args.factor, args.grad});
}

}  // namespace filigree::cuda

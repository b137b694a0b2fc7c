// A warp a row. The gradients of weight and bias are sums over the rows, taken in two stages:
// blocks sum pieces of the rows, then one thread a column adds the pieces in order.

#include "ops/layer_norm/layer_norm_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kWarps = 4;  // rows a block
constexpr int kColumns = 32, kRowsAtOnce = 8;
constexpr std::int64_t kMostPieces = 256, kLeastRows = 32;

// f(c) for the columns of a lane: groups of kWide, or single ones where rows are not aligned.
template <typename T, bool kAligned, typename Function>
__device__ inline void for_columns(std::int64_t width, const Function& function) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kStep = kAligned ? kWide<T> : 1;
  for (std::int64_t c = lane * kStep; c < width; c += 32 * kStep) function(c);
}

template <typename T, bool kAligned>
struct Group {
  static constexpr int kCount = kAligned ? kWide<T> : 1;
  float values[kCount];

  __device__ static Group load(const T* from) {
    Group group;
    if constexpr (kAligned) {
      const Wide<T> wide = *reinterpret_cast<const Wide<T>*>(from);
#pragma unroll
      for (int k = 0; k < kCount; ++k) group.values[k] = to_float(wide.values[k]);
    } else {
      group.values[0] = to_float(*from);
    }
    return group;
  }
  __device__ void store(T* to) const {
    if constexpr (kAligned) {
      Wide<T> wide;
#pragma unroll
      for (int k = 0; k < kCount; ++k) wide.values[k] = from_float<T>(values[k]);
      *reinterpret_cast<Wide<T>*>(to) = wide;
    } else {
      *to = from_float<T>(values[0]);
    }
  }
};

template <typename T, bool kAligned>
__global__ void layer_norm_rows(LayerNormArgs<T> args) {
  using G = Group<T, kAligned>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) return;
  const T* x = args.x + row * args.width;
  const float width = static_cast<float>(args.width);
  float sum = 0.0f;
  for_columns<T, kAligned>(args.width, [&](std::int64_t c) {
    const G values = G::load(x + c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k) sum += values.values[k];
  });
  const float mean = warp_sum(sum) / width;
  float squares = 0.0f;
  for_columns<T, kAligned>(args.width, [&](std::int64_t c) {
    const G values = G::load(x + c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k)
      squares += (values.values[k] - mean) * (values.values[k] - mean);
  });
  const float inverse = 1.0f / sqrtf(warp_sum(squares) / width + args.epsilon);
  for_columns<T, kAligned>(args.width, [&](std::int64_t c) {
    G values = G::load(x + c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k)
      values.values[k] =
          (values.values[k] - mean) * inverse * args.weight[c + k] + args.bias[c + k];
    values.store(args.y + row * args.width + c);
  });
  if (threadIdx.x % 32 == 0) {
    args.mean[row] = mean;
    args.inverse[row] = inverse;
  }
}

// With n = (x - mean) * inverse and g = dy * weight: dx = inverse * (g - mean(g) - n * mean(g n)).
template <typename T, bool kAligned>
__global__ void layer_norm_grad_rows(LayerNormGradArgs<T> args) {
  using G = Group<T, kAligned>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) return;
  const T* x = args.x + row * args.width;
  const T* dy = args.dy + row * args.width;
  const float width = static_cast<float>(args.width);
  const float mean = args.mean[row], inverse = args.inverse[row];
  float sum_g = 0.0f, sum_gn = 0.0f;
  for_columns<T, kAligned>(args.width, [&](std::int64_t c) {
    const G xs = G::load(x + c), dys = G::load(dy + c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k) {
      const float g = dys.values[k] * args.weight[c + k];
      sum_g += g;
      sum_gn += g * ((xs.values[k] - mean) * inverse);
    }
  });
  const float mean_g = warp_sum(sum_g) / width, mean_gn = warp_sum(sum_gn) / width;
  for_columns<T, kAligned>(args.width, [&](std::int64_t c) {
    const G xs = G::load(x + c);
    G values = G::load(dy + c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k)
      values.values[k] = inverse * (values.values[k] * args.weight[c + k] - mean_g -
                                    (xs.values[k] - mean) * inverse * mean_gn);
    values.store(args.dx + row * args.width + c);
  });
}

// partial[piece][0 or 1][width]: of dweight and of dbias.
template <typename T>
__global__ void layer_norm_grad_pieces(LayerNormGradArgs<T> args, std::int64_t piece,
                                       float* partial) {
  __shared__ float shared[2][kRowsAtOnce][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * piece;
  const std::int64_t end = begin + piece < args.rows ? begin + piece : args.rows;
  float dweight = 0.0f, dbias = 0.0f;
  if (column < args.width)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kRowsAtOnce) {
      const float dy = to_float(args.dy[row * args.width + column]);
      const float x = to_float(args.x[row * args.width + column]);
      dweight += dy * ((x - args.mean[row]) * args.inverse[row]);
      dbias += dy;
    }
  shared[0][threadIdx.y][threadIdx.x] = dweight;
  shared[1][threadIdx.y][threadIdx.x] = dbias;
  __syncthreads();
  if (threadIdx.y >= 2 || column >= args.width) return;
  float total = 0.0f;
  for (int r = 0; r < kRowsAtOnce; ++r) total += shared[threadIdx.y][r][threadIdx.x];
  partial[(static_cast<std::int64_t>(blockIdx.y) * 2 + threadIdx.y) * args.width + column] = total;
}

__global__ void add_pieces(std::int64_t width, std::int64_t pieces, const float* partial,
                           float* dweight, float* dbias) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= width) return;
  double totals[2] = {};
  for (std::int64_t p = 0; p < pieces; ++p)
    for (int which = 0; which < 2; ++which)
      totals[which] += static_cast<double>(partial[(p * 2 + which) * width + column]);
  if (dweight != nullptr) dweight[column] += static_cast<float>(totals[0]);
  if (dbias != nullptr) dbias[column] += static_cast<float>(totals[1]);
}

}  // namespace

template <typename T>
void layer_norm(const LayerNormArgs<T>& args) {
  if (args.rows == 0) return;
  const unsigned blocks = blocks_for(args.rows, kWarps, INT32_MAX);
  if (wide_rows(args.x, args.width) && wide_rows(args.y, args.width))
    layer_norm_rows<T, true><<<blocks, kWarps * 32, 0, stream()>>>(args);
  else
    layer_norm_rows<T, false><<<blocks, kWarps * 32, 0, stream()>>>(args);
  check_launch("layer_norm");
}

template <typename T>
void layer_norm_grad(const LayerNormGradArgs<T>& args) {
  if (args.rows == 0) return;
  if (args.dx != nullptr) {
    const unsigned blocks = blocks_for(args.rows, kWarps, INT32_MAX);
    if (wide_rows(args.x, args.width) && wide_rows(args.dy, args.width) &&
        wide_rows(args.dx, args.width))
      layer_norm_grad_rows<T, true><<<blocks, kWarps * 32, 0, stream()>>>(args);
    else
      layer_norm_grad_rows<T, false><<<blocks, kWarps * 32, 0, stream()>>>(args);
    check_launch("layer_norm_grad");
  }
  if (args.dweight == nullptr && args.dbias == nullptr) return;
  std::int64_t pieces = (args.rows + kLeastRows - 1) / kLeastRows;
  if (pieces > kMostPieces) pieces = kMostPieces;
  const std::int64_t piece = (args.rows + pieces - 1) / pieces;
  const Workspace workspace(static_cast<std::size_t>(pieces * 2 * args.width) * sizeof(float));
  const dim3 grid(blocks_for(args.width, kColumns, INT32_MAX), static_cast<unsigned>(pieces));
  layer_norm_grad_pieces<<<grid, dim3(kColumns, kRowsAtOnce), 0, stream()>>>(args, piece,
                                                                             workspace.as<float>());
  check_launch("layer_norm_grad");
  add_pieces<<<blocks_for(args.width, 128, INT32_MAX), 128, 0, stream()>>>(
      args.width, pieces, workspace.as<float>(), args.dweight, args.dbias);
  check_launch("layer_norm_grad");
}

template void layer_norm(const LayerNormArgs<float>&);
template void layer_norm(const LayerNormArgs<Bf16>&);
template void layer_norm_grad(const LayerNormGradArgs<float>&);
template void layer_norm_grad(const LayerNormGradArgs<Bf16>&);

}  // namespace filigree::cuda

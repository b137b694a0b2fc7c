// A warp a row. Rows of up to 1024 elements stay in registers between their passes; then the
// gradients of weight and bias, sums over the rows, are taken in the same pass: a warp keeps its
// columns' sums over its rows, a block adds those of its warps, and a last kernel the blocks', all
// in a fixed order. Other rows are read again for each pass.

#include <type_traits>

#include "ops/norm/norm_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kWarps = 4;  // rows a block
constexpr int kColumns = 32, kRowsAtOnce = 8;
constexpr std::int64_t kMostPieces = 528, kLeastRows = 32;

// What a lane reads at once: kWide elements, or a single one where rows are not aligned.
template <typename T, bool kAligned>
struct Group {
  static constexpr int kCount = kAligned ? kWide<T> : 1;
  float values[kCount];

  template <typename From>
  __device__ static Group load(const From* from) {
    Group group;
    if constexpr (kAligned) {
#pragma unroll
      for (int w = 0; w < kCount / kWide<From>; ++w) {
        const Wide<From> wide = reinterpret_cast<const Wide<From>*>(from)[w];
#pragma unroll
        for (int k = 0; k < kWide<From>; ++k)
          group.values[w * kWide<From> + k] = to_float(wide.values[k]);
      }
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

// f(g, c) for the groups of a lane, c being the first column of group g. With kHeld > 0 there are
// at most so many, and g is a constant in each.
template <typename T, bool kAligned, int kHeld, typename Function>
__device__ inline void for_groups(std::int64_t width, const Function& function) {
  constexpr int kStep = Group<T, kAligned>::kCount;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kHeld > 0) {
#pragma unroll
    for (int g = 0; g < kHeld; ++g) {
      const std::int64_t c = (g * 32 + lane) * kStep;
      if (c < width) function(g, c);
    }
  } else {
    for (std::int64_t c = lane * kStep; c < width; c += 32 * kStep) function(0, c);
  }
}

// A row, kept in registers or read again.
template <typename T, bool kAligned, int kHeld>
struct Row {
  using G = Group<T, kAligned>;
  const T* data;
  G held[kHeld > 0 ? kHeld : 1];

  __device__ Row(const T* row, std::int64_t width) : data(row) {
    if constexpr (kHeld > 0)
      for_groups<T, kAligned, kHeld>(width,
                                     [&](int g, std::int64_t c) { held[g] = G::load(data + c); });
  }
  __device__ G at(int g, std::int64_t c) const {
    if constexpr (kHeld > 0) return held[g];
    return G::load(data + c);
  }
};

template <typename T, bool kAligned, int kHeld>
__global__ void norm_rows(NormArgs<T> args) {
  using G = Group<T, kAligned>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= args.rows) return;
  const Row<T, kAligned, kHeld> x(args.x + row * args.width, args.width);
  const float width = static_cast<float>(args.width);
  float mean = 0.0f;
  if (args.mean != nullptr) {
    float sum = 0.0f;
    for_groups<T, kAligned, kHeld>(args.width, [&](int g, std::int64_t c) {
      const G values = x.at(g, c);
#pragma unroll
      for (int k = 0; k < G::kCount; ++k) sum += values.values[k];
    });
    mean = warp_sum(sum) / width;
  }
  float squares = 0.0f;
  for_groups<T, kAligned, kHeld>(args.width, [&](int g, std::int64_t c) {
    const G values = x.at(g, c);
#pragma unroll
    for (int k = 0; k < G::kCount; ++k)
      squares += (values.values[k] - mean) * (values.values[k] - mean);
  });
  const float inverse = 1.0f / sqrtf(warp_sum(squares) / width + args.epsilon);
  for_groups<T, kAligned, kHeld>(args.width, [&](int g, std::int64_t c) {
    G values = x.at(g, c);
    const G weight = G::load(args.weight + c);
    const G bias = args.bias != nullptr ? G::load(args.bias + c) : G{};
#pragma unroll
    for (int k = 0; k < G::kCount; ++k)
      values.values[k] = (values.values[k] - mean) * inverse * weight.values[k] + bias.values[k];
    values.store(args.y + row * args.width + c);
  });
  if (threadIdx.x % 32 == 0) {
    if (args.mean != nullptr) args.mean[row] = mean;
    args.inverse[row] = inverse;
  }
}

// With n = (x - mean) * inverse and g = dy * weight: dx = inverse * (g - mean(g) - n * mean(g n)),
// in which nothing is centred without a mean.
// With kHeld > 0 each warp takes every (warps in all)-th row and leaves the block's sums of dy n
// and dy in partial[block][0 and 1][width], unless that is null.
template <typename T, bool kAligned, int kHeld>
__global__ void __launch_bounds__(kWarps * 32, kHeld* kWide<T> <= 24 ? 4 : 2)
    norm_grad_rows(NormGradArgs<T> args, float* partial) {
  using G = Group<T, kAligned>;
  constexpr int kSums = kHeld > 0 ? kHeld : 1;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float width = static_cast<float>(args.width);
  G dweight[kSums] = {}, dbias[kSums] = {};
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp; row < args.rows;
       row += warps) {
    const Row<T, kAligned, kHeld> x(args.x + row * args.width, args.width);
    const Row<T, kAligned, kHeld> dy(args.dy + row * args.width, args.width);
    // Read with the others, though it is added last, so that the three reads go on together.
    const bool add = args.add_to_dx;
    const Row<T, kAligned, kHeld> before(add ? args.dx + row * args.width : x.data, args.width);
    const bool centred = args.mean != nullptr;
    const float mean = centred ? args.mean[row] : 0.0f, inverse = args.inverse[row];
    float sum_g = 0.0f, sum_gn = 0.0f;
    for_groups<T, kAligned, kHeld>(args.width, [&](int g, std::int64_t c) {
      const G xs = x.at(g, c), dys = dy.at(g, c), weight = G::load(args.weight + c);
#pragma unroll
      for (int k = 0; k < G::kCount; ++k) {
        const float n = (xs.values[k] - mean) * inverse, product = dys.values[k] * weight.values[k];
        sum_g += product;
        sum_gn += product * n;
        if constexpr (kHeld > 0) {
          dweight[g].values[k] += dys.values[k] * n;
          dbias[g].values[k] += dys.values[k];
        }
      }
    });
    if (args.dx == nullptr) continue;
    const float mean_g = centred ? warp_sum(sum_g) / width : 0.0f;
    const float mean_gn = warp_sum(sum_gn) / width;
    for_groups<T, kAligned, kHeld>(args.width, [&](int g, std::int64_t c) {
      const G xs = x.at(g, c), weight = G::load(args.weight + c);
      G values = dy.at(g, c);
      T* dx = args.dx + row * args.width + c;
      const G old = before.at(g, c);
#pragma unroll
      for (int k = 0; k < G::kCount; ++k)
        values.values[k] =
            (add ? old.values[k] : 0.0f) + inverse * (values.values[k] * weight.values[k] - mean_g -
                                                      (xs.values[k] - mean) * inverse * mean_gn);
      values.store(dx);
    });
  }
  if constexpr (kHeld > 0) {
    if (partial == nullptr) return;
    __shared__ float shared[kWarps][kHeld * 32 * G::kCount];
    for (int which = 0; which < 2; ++which) {
      __syncthreads();
#pragma unroll
      for (int g = 0; g < kHeld; ++g)
#pragma unroll
        for (int k = 0; k < G::kCount; ++k)
          shared[warp][(g * 32 + lane) * G::kCount + k] =
              which == 0 ? dweight[g].values[k] : dbias[g].values[k];
      __syncthreads();
      float* to = partial + (static_cast<std::int64_t>(blockIdx.x) * 2 + which) * args.width;
      for (std::int64_t c = threadIdx.x; c < args.width; c += kWarps * 32) {
        float total = shared[0][c];
#pragma unroll
        for (int w = 1; w < kWarps; ++w) total += shared[w][c];
        to[c] = total;
      }
    }
  }
}

// partial[piece][0 or 1][width]: of dweight and of dbias.
template <typename T>
__global__ void norm_grad_pieces(NormGradArgs<T> args, std::int64_t piece, float* partial) {
  __shared__ float shared[2][kRowsAtOnce][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * piece;
  const std::int64_t end = begin + piece < args.rows ? begin + piece : args.rows;
  float dweight = 0.0f, dbias = 0.0f;
  if (column < args.width)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kRowsAtOnce) {
      const float dy = to_float(args.dy[row * args.width + column]);
      const float x = to_float(args.x[row * args.width + column]);
      const float mean = args.mean != nullptr ? args.mean[row] : 0.0f;
      dweight += dy * ((x - mean) * args.inverse[row]);
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

// One of dweight and dbias a blockIdx.y: a thread adds every kRowsAtOnce-th piece of its column,
// then the first thread of each column the others' sums.
__global__ void add_pieces(std::int64_t width, std::int64_t pieces, const float* partial,
                           float* dweight, float* dbias) {
  __shared__ double shared[kRowsAtOnce][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t which = blockIdx.y;
  double total = 0.0;
  if (column < width)
    for (std::int64_t p = threadIdx.y; p < pieces; p += kRowsAtOnce)
      total += static_cast<double>(partial[(p * 2 + which) * width + column]);
  shared[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int r = 1; r < kRowsAtOnce; ++r) total += shared[r][threadIdx.x];
  float* to = which == 0 ? dweight : dbias;
  if (to != nullptr) to[column] += static_cast<float>(total);
}

// Calls f with the number of groups of a row that its lanes hold, as a constant; false when a row
// has too many.
template <typename T, typename Function>
bool with_held(std::int64_t width, const Function& function) {
  const std::int64_t groups = (width + 32 * kWide<T> - 1) / (32 * kWide<T>);
  if (groups == 1) return function(std::integral_constant<int, 1>()), true;
  if (groups == 2) return function(std::integral_constant<int, 2>()), true;
  if (groups == 3) return function(std::integral_constant<int, 3>()), true;
  if (groups == 4) return function(std::integral_constant<int, 4>()), true;
  if (groups <= 8 && sizeof(T) == 4) return function(std::integral_constant<int, 8>()), true;
  return false;
}

template <typename T, typename... Rest>
bool all_wide(std::int64_t width, const T* first, const Rest*... rest) {
  return wide_rows(first, width) && (wide_rows(rest, width) && ...);
}

}  // namespace

template <typename T>
void norm(const NormArgs<T>& args) {
  if (args.rows == 0) return;
  const unsigned blocks = blocks_for(args.rows, kWarps, INT32_MAX);
  const bool wide =
      all_wide(args.width, args.x, args.y) &&
      all_wide(args.width, args.weight, args.bias != nullptr ? args.bias : args.weight);
  const bool done =
      wide && with_held<T>(args.width, [&](auto held) {
        norm_rows<T, true, decltype(held)::value><<<blocks, kWarps * 32, 0, stream()>>>(args);
      });
  if (!done && wide)
    norm_rows<T, true, 0><<<blocks, kWarps * 32, 0, stream()>>>(args);
  else if (!done)
    norm_rows<T, false, 0><<<blocks, kWarps * 32, 0, stream()>>>(args);
  check_launch("norm");
}

template <typename T>
void norm_grad(const NormGradArgs<T>& args) {
  if (args.rows == 0) return;
  const bool sums = args.dweight != nullptr || args.dbias != nullptr;
  std::int64_t pieces = (args.rows + kLeastRows - 1) / kLeastRows;
  if (pieces > kMostPieces) pieces = kMostPieces;
  const Workspace workspace(static_cast<std::size_t>(pieces * 2 * args.width) * sizeof(float));
  float* partial = workspace.as<float>();
  const bool wide = all_wide(args.width, args.x, args.dy, args.dx == nullptr ? args.x : args.dx) &&
                    all_wide(args.width, args.weight);
  const bool done = wide && with_held<T>(args.width, [&](auto held) {
                      norm_grad_rows<T, true, decltype(held)::value>
                          <<<static_cast<unsigned>(pieces), kWarps * 32, 0, stream()>>>(
                              args, sums ? partial : nullptr);
                    });
  if (!done && args.dx != nullptr) {
    const unsigned blocks = blocks_for(args.rows, kWarps, INT32_MAX);
    if (wide)
      norm_grad_rows<T, true, 0><<<blocks, kWarps * 32, 0, stream()>>>(args, nullptr);
    else
      norm_grad_rows<T, false, 0><<<blocks, kWarps * 32, 0, stream()>>>(args, nullptr);
  }
  check_launch("norm_grad");
  if (!sums) return;
  const unsigned columns = blocks_for(args.width, kColumns, INT32_MAX);
  const dim3 threads(kColumns, kRowsAtOnce);
  if (!done)
    norm_grad_pieces<<<dim3(columns, static_cast<unsigned>(pieces)), threads, 0, stream()>>>(
        args, (args.rows + pieces - 1) / pieces, partial);
  check_launch("norm_grad");
  add_pieces<<<dim3(columns, 2), threads, 0, stream()>>>(args.width, pieces, partial, args.dweight,
                                                         args.dbias);
  check_launch("norm_grad");
}

template void norm(const NormArgs<float>&);
template void norm(const NormArgs<Bf16>&);
template void norm_grad(const NormGradArgs<float>&);
template void norm_grad(const NormGradArgs<Bf16>&);

}  // namespace filigree::cuda

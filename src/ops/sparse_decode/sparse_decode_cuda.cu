// A block a row. Its threads first put down where the decoder rows of all entries begin, of all
// sources, so that then nothing but these rows is waited for. Sums run over entries in their order.

#include "ops/sparse_decode/sparse_decode_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/together_cuda.cuh"

namespace filigree::cuda {
namespace {

static_assert(sizeof(DecodeArgs<float>) <= kMostArgumentBytes);

constexpr int kList = 256;  // entries put down at a time
constexpr int kAtOnce = 4;  // decoder rows loaded before they are added
constexpr int kMostThreads = 320;
constexpr int kDotThreads = 256;

// Of one row, the entries of all sources one after the other.
template <typename T>
struct Entries {
  std::int32_t before[kDecodeSources + 1];  // of the sources before each
  std::int32_t begin[kDecodeSources];
  const T* decoder[kList];  // of the entry's feature
  float value[kList];
  std::int32_t place[kList];  // among its source's entries
  std::int16_t source[kList];

  __device__ void count(const DecodeArgs<T>& args, std::int64_t r) {
    if (static_cast<int>(threadIdx.x) < args.count) {
      const std::int32_t* from = args.sources[threadIdx.x].begin + r;
      begin[threadIdx.x] = from[0];
      before[threadIdx.x + 1] = from[1] - from[0];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      before[0] = 0;
      for (int s = 0; s < args.count; ++s) before[s + 1] += before[s];
    }
    __syncthreads();
  }

  // Entries [first, end) of all; between barriers.
  __device__ void put_down(const DecodeArgs<T>& args, std::int32_t first, std::int32_t end,
                           bool values) {
    __syncthreads();
    for (std::int32_t e = first + static_cast<std::int32_t>(threadIdx.x); e < end;
         e += static_cast<std::int32_t>(blockDim.x)) {
      int s = 0;
      while (before[s + 1] <= e) ++s;
      const DecodeSource<T>& from = args.sources[s];
      const std::int32_t p = begin[s] + e - before[s];
      decoder[e - first] = from.decoder + from.feature[p] * (from.reach * args.width);
      if (values) value[e - first] = from.value[p];
      place[e - first] = p;
      source[e - first] = static_cast<std::int16_t>(s);
    }
    __syncthreads();
  }
};

template <typename T, int kVector>
__device__ inline void load(const T* from, float (&to)[kVector]) {
  if constexpr (kVector == 1) {
    to[0] = to_float(*from);
  } else {
#pragma unroll
    for (int part = 0; part < kVector / kWide<T>; ++part) {
      const Wide<T> values = reinterpret_cast<const Wide<T>*>(from)[part];
#pragma unroll
      for (int k = 0; k < kWide<T>; ++k) to[part * kWide<T> + k] = to_float(values.values[k]);
    }
  }
}

// Quotients by one number without dividing.
struct Divider {
  int width;
  unsigned magic;
  __device__ explicit Divider(int by) : width(by), magic(0xFFFFFFFFu / by + 1) {}
  __device__ int operator()(int c) const {
    if (width == 1) return c;
    const int quotient = static_cast<int>(__umulhi(c, magic));
    return quotient * width > c ? quotient - 1 : quotient;  // at most one too large
  }
};

// Each thread has kVector of the columns of all targets.
template <typename T, int kVector>
__global__ void write_rows(const __grid_constant__ DecodeArgs<T> args) {
  __shared__ Entries<T> entries;
  const std::int64_t r = blockIdx.x;
  const int width = static_cast<int>(args.width);
  const int columns = static_cast<int>(args.targets) * width;
  const int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kVector;
  const int m = c / width;
  float* to = args.y + (m * args.rows + r) * width + (c - m * width);
  float total[kVector] = {};
  if (args.add && c < columns) load(const_cast<const float*>(to), total);
  entries.count(args, r);
  const std::int32_t all = entries.before[args.count];
  for (std::int32_t first = 0; first < all; first += kList) {
    const std::int32_t last = first + kList < all ? first + kList : all;
    entries.put_down(args, first, last, true);
    for (int s = 0; s < args.count; ++s) {
      const int source_first = static_cast<int>(args.sources[s].first) * width;
      const int column = c - source_first;
      if (c >= columns || column < 0 || column >= static_cast<int>(args.sources[s].reach) * width)
        continue;
      const std::int32_t from = entries.before[s] > first ? entries.before[s] - first : 0;
      const std::int32_t end =
          (entries.before[s + 1] < last ? entries.before[s + 1] : last) - first;
      for (std::int32_t e = from; e < end; e += kAtOnce) {
        float values[kAtOnce][kVector];
        float factor[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          // Beyond the last the last again, as nothing.
          const std::int32_t i = e + j < end ? e + j : end - 1;
          factor[j] = e + j < end ? entries.value[i] : 0.0f;
          load(entries.decoder[i] + column, values[j]);
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
          for (int k = 0; k < kVector; ++k) total[k] += factor[j] * values[j][k];
      }
    }
  }
  if (c >= columns) return;
  if constexpr (kVector == 1) {
    *to = total[0];
  } else {
#pragma unroll
    for (int part = 0; part < kVector / kWide<float>; ++part) {
      Wide<float> values;
#pragma unroll
      for (int k = 0; k < kWide<float>; ++k) values.values[k] = total[part * kWide<float> + k];
      reinterpret_cast<Wide<float>*>(to)[part] = values;
    }
  }
}

// A warp an entry.
template <typename T, int kVector>
__global__ void dots(const __grid_constant__ DecodeArgs<T> args) {
  __shared__ Entries<T> entries;
  const std::int64_t r = blockIdx.x;
  const int width = static_cast<int>(args.width);
  const Divider target_of(width);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  entries.count(args, r);
  const std::int32_t all = entries.before[args.count];
  for (std::int32_t first = 0; first < all; first += kList) {
    const std::int32_t last = first + kList < all ? first + kList : all;
    entries.put_down(args, first, last, false);
    for (std::int32_t e = warp; e < last - first; e += kDotThreads / 32) {
      const DecodeSource<T>& source = args.sources[entries.source[e]];
      const int columns = static_cast<int>(source.reach) * width;
      const T* decoder = entries.decoder[e];
      const float* dy = args.dy + (source.first * args.rows + r) * width;
      float total = 0.0f;
#pragma unroll 3
      for (int c = lane * kVector; c < columns; c += 32 * kVector) {
        const int m = target_of(c);
        float w[kVector], g[kVector];
        load(decoder + c, w);
        load(dy + m * args.rows * width + (c - m * width), g);
#pragma unroll
        for (int k = 0; k < kVector; ++k) total += w[k] * g[k];
      }
      total = warp_sum(total);
      if (lane == 0) source.dvalue[entries.place[e]] = total;
    }
  }
}

template <typename T>
bool wide_sources(const DecodeArgs<T>& args) {
  bool wide = wide_rows(args.y, args.width) && wide_rows(args.dy, args.width);
  for (int s = 0; s < args.count; ++s)
    wide = wide && wide_rows(args.sources[s].decoder, args.width);
  return wide;
}

template <typename T, int kVector>
void launch_rows(const DecodeArgs<T>& args) {
  const std::int64_t vectors = (args.targets * args.width + kVector - 1) / kVector;
  const std::int64_t parts = (vectors + kMostThreads - 1) / kMostThreads;
  std::int64_t threads = ((vectors + parts - 1) / parts + 31) / 32 * 32;
  if (threads < kDecodeSources) threads = kDecodeSources;  // one counts a source
  const dim3 grid(static_cast<unsigned>(args.rows), static_cast<unsigned>(parts));
  write_rows<T, kVector><<<grid, static_cast<unsigned>(threads), 0, stream()>>>(args);
  check_launch("decode_rows");
}

}  // namespace

template <typename T>
void decode_rows(const DecodeArgs<T>& args) {
  if (args.rows == 0) return;
  wide_sources(args) ? launch_rows<T, kWide<T>>(args) : launch_rows<T, 1>(args);
}

template <typename T>
void decode_dots(const DecodeArgs<T>& args) {
  if (args.rows == 0) return;
  const auto rows = static_cast<unsigned>(args.rows);
  if (wide_sources(args))
    dots<T, kWide<T>><<<rows, kDotThreads, 0, stream()>>>(args);
  else
    dots<T, 1><<<rows, kDotThreads, 0, stream()>>>(args);
  check_launch("decode_dots");
}

template void decode_rows(const DecodeArgs<float>&);
template void decode_rows(const DecodeArgs<Bf16>&);
template void decode_dots(const DecodeArgs<float>&);
template void decode_dots(const DecodeArgs<Bf16>&);

}  // namespace filigree::cuda

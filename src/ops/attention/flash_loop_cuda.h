// What the kernels of flash attention have in common: going over tiles while the next are copied,
// the products of a warp's 16 rows with a tile of 64, and the choice of a kernel by its constants.
#pragma once

#include <type_traits>

#include "ops/attention/flash_attention_cuda.h"
#include "ops/attention/flash_gate_cuda.h"
#include "ops/attention/flash_tiles_cuda.h"

namespace filigree::cuda::flash {

// Pieces `begin` to end - 1, in two places of shared memory by turns: while use(i) reads one,
// load(i + 1) copies the next to the other. The copies of the first are under way already. All
// threads of the block take part; `use` may return early.
template <typename Load, typename Use>
__device__ __forceinline__ void over_pieces(int begin, int end, const Load& load, const Use& use) {
  for (int i = begin; i < end; ++i) {
    wait_copies<0>();
    __syncthreads();
    if (i + 1 < end) load(i + 1);
    use(i);
  }
}

inline constexpr int kTileKeys = 64;

// Which keys a query, given by its index, sees.
struct Sight {
  int offset;  // of a query's position to its index
  int window;

  __device__ __forceinline__ explicit Sight(const FlashShape& shape)
      : offset(shape.Tk - shape.Tq), window(shape.window) {}

  __device__ __forceinline__ bool sees(int query, int key) const {
    return static_cast<unsigned>(query + offset - key) < static_cast<unsigned>(window);
  }
  // Of neighbouring queries and keys: whether none sees any, whether each sees all.
  __device__ __forceinline__ bool none(int first_query, int last_query, int first_key,
                                       int last_key) const {
    return last_query + offset < first_key || first_query + offset - last_key >= window;
  }
  __device__ __forceinline__ bool all(int first_query, int last_query, int first_key,
                                      int last_key) const {
    return first_query + offset >= last_key && last_query + offset - first_key < window;
  }
  // The first tile of keys that a query or one after it sees.
  __device__ __forceinline__ int first_tile(int query) const {
    return max(query + offset - window + 1, 0) / kTileKeys;
  }
};

// c tanh(s / c) in terms of x = q . k: the x' whose scale * x' is that, and its slope.
struct SoftCap {
  float inverse = 0.0f, size = 0.0f;  // scale / c, c / scale; 0: no cap

  __device__ __forceinline__ explicit SoftCap(const FlashShape& shape) {
    if (shape.soft_cap > 0.0f)
      inverse = shape.scale / shape.soft_cap, size = shape.soft_cap / shape.scale;
  }
  __device__ __forceinline__ bool on() const { return size > 0.0f; }
  __device__ __forceinline__ float operator()(float x) const {
    return size * tanh_fast(x * inverse);
  }
  // Of the capped x'.
  __device__ __forceinline__ float slope(float capped) const {
    const float t = capped * inverse;
    return fmaf(-t, t, 1.0f);
  }
  template <int kTiles>
  __device__ __forceinline__ void apply(float (&x)[kTiles][4]) const {
    if (!on()) return;
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) x[n][c] = (*this)(x[n][c]);
  }
};

// Keys and values of one head, a tile of 64 at a time; in shared memory two of each.
template <int D, int kThreads>
struct KeyTiles {
  static constexpr int kBytes = kTileKeys * kRowBytes<D>;

  const bf16 *k, *v;
  std::int64_t stride;
  int limit;  // Tk
  std::uint32_t k_tiles, v_tiles;

  // Those that `args` has for a head of an example, with room for the tiles from `room` on.
  template <typename Args>
  __device__ __forceinline__ KeyTiles(const Args& args, int batch, int key_head, std::uint32_t room)
      : k(static_cast<const bf16*>(args.k) + batch * args.kv_strides.batch + key_head * D),
        v(static_cast<const bf16*>(args.v) + batch * args.kv_strides.batch + key_head * D),
        stride(args.kv_strides.token),
        limit(args.shape.Tk),
        k_tiles(room),
        v_tiles(room + 2 * kBytes) {}

  __device__ __forceinline__ void load(int tile) const {
    const std::uint32_t at = static_cast<std::uint32_t>(tile & 1) * kBytes;
    load_tile<D, kTileKeys, kThreads>(k_tiles + at, k, stride, tile * kTileKeys, limit);
    load_tile<D, kTileKeys, kThreads>(v_tiles + at, v, stride, tile * kTileKeys, limit);
    commit_copies();
  }

  // use(tile, address of its keys, address of its values) for those from `begin`, which is under
  // way, to before `end`.
  template <typename Use>
  __device__ __forceinline__ void each(int begin, int end, const Use& use) const {
    over_pieces(
        begin, end, [&](int tile) { load(tile); },
        [&](int tile) {
          const std::uint32_t at = static_cast<std::uint32_t>(tile & 1) * kBytes;
          use(tile, k_tiles + at, v_tiles + at);
        });
  }
};

// s [16, 64] += columns [16 step, 16 step + 16) of 16 rows, as left operand, times those of the 64
// rows of a tile.
template <int D>
__device__ __forceinline__ void add_products(float (&s)[8][4], const std::uint32_t (&rows)[4],
                                             std::uint32_t tile, int step, int lane) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    std::uint32_t b[4];
    load_right_rows<D>(b, tile, pair * 16, step, lane);
    multiply(s[2 * pair], rows, b[0], b[1]);
    multiply(s[2 * pair + 1], rows, b[2], b[3]);
  }
}

// s [16, 64] += the warp's 16 rows of one tile times the 64 rows of another.
template <int D>
__device__ __forceinline__ void add_products(float (&s)[8][4], std::uint32_t left,
                                             std::uint32_t right, int warp, int lane) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    std::uint32_t rows[4];
    load_left<D>(rows, left, warp * 16, step, lane);
    add_products<D>(s, rows, right, step, lane);
  }
}

// sum [16, D] += s [16, 64], rounded to bf16, times the 64 rows of a tile. seen(a) is given each
// quarter of the rounded s as left operand.
template <int D, typename Seen>
__device__ __forceinline__ void add_mixture(float (&sum)[D / 8][4], const float (&s)[8][4],
                                            std::uint32_t tile, int lane, const Seen& seen) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    std::uint32_t a[4];
    as_left(a, s[2 * step], s[2 * step + 1]);
    seen(a);
#pragma unroll
    for (int pair = 0; pair < D / 16; ++pair) {
      std::uint32_t b[4];
      load_right_columns<D>(b, tile, step * 16, pair, lane);
      multiply(sum[2 * pair], a, b[0], b[1]);
      multiply(sum[2 * pair + 1], a, b[2], b[3]);
    }
  }
}

// The noise of a head and of the two queries that a lane has, 8 apart, the first at `position`.
struct RowNoise {
  HighLow head = {};
  QueryNoise query[2] = {};
};
template <FlashGate kGate>
__device__ __forceinline__ RowNoise row_noise(const NoiseKeys& keys, std::uint32_t head_row,
                                              int position) {
  RowNoise noise;
  if constexpr (kGate == FlashGate::kSampled) {
    noise.head = head_noise(head_row);
#pragma unroll
    for (int r = 0; r < 2; ++r)
      noise.query[r] = query_noise(keys, noise.head, static_cast<std::uint32_t>(position + 8 * r));
  }
  return noise;
}

// launch(width of heads) as an integral constant.
template <typename Launch>
cudaError_t with_width(int D, const Launch& launch) {
  switch (D) {
    case 16: return launch(std::integral_constant<int, 16>());
    case 32: return launch(std::integral_constant<int, 32>());
    case 64: return launch(std::integral_constant<int, 64>());
    case 80: return launch(std::integral_constant<int, 80>());
    case 96: return launch(std::integral_constant<int, 96>());
    case 128: return launch(std::integral_constant<int, 128>());
    case 256: return launch(std::integral_constant<int, 256>());
    default: return cudaErrorInvalidValue;
  }
}

// launch(width of heads, kind of gate), likewise.
template <typename Launch>
cudaError_t with_constants(const FlashShape& shape, const FlashGateArgs& gate,
                           const Launch& launch) {
  return with_width(shape.D, [&](auto width) {
    switch (gate.kind) {
      case FlashGate::kNone:
        return launch(width, std::integral_constant<FlashGate, FlashGate::kNone>());
      case FlashGate::kHard:
        return launch(width, std::integral_constant<FlashGate, FlashGate::kHard>());
      case FlashGate::kSampled:
        return launch(width, std::integral_constant<FlashGate, FlashGate::kSampled>());
    }
    return cudaErrorInvalidValue;
  });
}

// With `bytes` of dynamic shared memory.
template <typename Kernel, typename... Args>
cudaError_t launch_with_memory(Kernel kernel, const dim3& grid, int threads, int bytes,
                               cudaStream_t stream, const Args&... args) {
  if (const cudaError_t code =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      code != cudaSuccess)
    return code;
  kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), stream>>>(
      args...);
  return cudaGetLastError();
}

}  // namespace filigree::cuda::flash

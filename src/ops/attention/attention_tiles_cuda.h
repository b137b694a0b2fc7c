// The tiles of attention_tiled_cuda.cu: 64 tokens or 64 x 64 edges in shared memory, worked on by
// 256 threads as 16 x 16. Thread (tx, ty) has the products of rows ty + 16 i and columns tx + 16 j,
// i and j from 0 to 3, so that the four keys of a row that share a block of noise (gate_noise.h)
// are one thread's.
#pragma once

#include "ops/attention/attention_edge_cuda.h"
#include "ops/attention/attention_kernels.h"

namespace filigree::cuda::tiled {

inline constexpr int kSide = 64, kThreads = 256;
inline constexpr int kEdgeStride = kSide + 4;  // of a tile of edges in shared memory
// Of a tile of tokens: rows that are read together lie in other banks.
template <int D>
inline constexpr int kRowStride = D + 4;
template <int D>
inline constexpr int kTokens = kSide* kRowStride<D>;  // floats
inline constexpr int kEdges = kSide * kEdgeStride;

__device__ inline int tx() { return static_cast<int>(threadIdx.x) & 15; }
__device__ inline int ty() { return static_cast<int>(threadIdx.x) >> 4; }

// Over the 16 threads that share rows.
__device__ inline float row_sum(float x) {
  for (int offset = 8; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, offset);
  return x;
}
__device__ inline float row_maximum(float x) {
  for (int offset = 8; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, offset));
  return x;
}

// Tokens [first, first + 64) of one head, whose tokens are `stride` apart; zeros from `limit` on.
template <int D>
__device__ inline void load_tokens(float* tile, const float* head, std::int64_t stride,
                                   std::int64_t first, std::int64_t limit) {
  for (int i = static_cast<int>(threadIdx.x); i < kSide * D / 4; i += kThreads) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    float4 values = {0.0f, 0.0f, 0.0f, 0.0f};
    if (first + row < limit)
      values = *reinterpret_cast<const float4*>(head + (first + row) * stride + column);
    *reinterpret_cast<float4*>(tile + row * kRowStride<D> + column) = values;
  }
}

__device__ inline float4 four(const float* from) { return *reinterpret_cast<const float4*>(from); }

// out[i][j] = a[row i] . b[column j]
template <int D>
__device__ inline void products(float (&out)[4][4], const float* a, const float* b) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) out[i][j] = 0.0f;
#pragma unroll 4
  for (int d = 0; d < D; d += 4) {
    float4 x[4], y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = four(a + (ty() + 16 * i) * kRowStride<D> + d);
      y[i] = four(b + (tx() + 16 * i) * kRowStride<D> + d);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        out[i][j] = fmaf(x[i].x, y[j].x, out[i][j]);
        out[i][j] = fmaf(x[i].y, y[j].y, out[i][j]);
        out[i][j] = fmaf(x[i].z, y[j].z, out[i][j]);
        out[i][j] = fmaf(x[i].w, y[j].w, out[i][j]);
      }
  }
}

__device__ inline void put_edges(float* tile, const float (&values)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) tile[(ty() + 16 * i) * kEdgeStride + tx() + 16 * j] = values[i][j];
}

// A thread's part of a [64, D] result: rows ty + 16 i, and D / 16 columns.
template <int D>
struct Rows {
  static constexpr int kColumns = D / 16;
  float values[4][kColumns];

  __device__ static int column(int c) {
    return kColumns < 4 ? tx() * kColumns + c : c / 4 * 64 + tx() * 4 + c % 4;
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) values[i][c] = 0.0f;
  }

  // += edges [64, 64] tokens [64, D]
  __device__ void add_product(const float* edges, const float* tokens) {
#pragma unroll 4
    for (int k = 0; k < kSide; k += 4) {
      float left[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 x = four(edges + (ty() + 16 * i) * kEdgeStride + k);
        left[i][0] = x.x, left[i][1] = x.y, left[i][2] = x.z, left[i][3] = x.w;
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float* row = tokens + (k + n) * kRowStride<D>;
        float right[kColumns];
        if constexpr (kColumns < 4) {
#pragma unroll
          for (int c = 0; c < kColumns; ++c) right[c] = row[column(c)];
        } else {
#pragma unroll
          for (int c = 0; c < kColumns; c += 4) {
            const float4 x = four(row + column(c));
            right[c] = x.x, right[c + 1] = x.y, right[c + 2] = x.z, right[c + 3] = x.w;
          }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int c = 0; c < kColumns; ++c)
            values[i][c] = fmaf(left[i][n], right[c], values[i][c]);
      }
    }
  }

  __device__ void scale_row(int i, float factor) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) values[i][c] *= factor;
  }

  // As tokens of one head from `first` on; those from `limit` on are left out.
  __device__ void store(float* head, std::int64_t stride, std::int64_t first,
                        std::int64_t limit) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = first + ty() + 16 * i;
      if (row >= limit) continue;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) head[row * stride + column(c)] = values[i][c];
    }
  }
};

// What the gates of one head need.
struct HeadGate {
  bool on, sampled;
  float bias;
  std::uint64_t key;

  __device__ HeadGate(const GateArgs& gate, std::int64_t h)
      : on(gate.bias != nullptr),
        sampled(on && gate.sample),
        bias(on ? gate.bias[h] : 0.0f),
        key(gate_noise_key(gate.noise)) {}
};

// The uniform numbers of query i and keys first_key + lane + 16 n; first_key is a multiple of 64.
__device__ inline void four_uniforms(float (&u)[4], const GateArgs& gate, const HeadGate& head,
                                     const AttentionShape& s, std::int64_t b, std::int64_t h,
                                     std::int64_t i, std::int64_t first_key, int lane) {
  if (!head.sampled) {
    u[0] = u[1] = u[2] = u[3] = 0.5f;
  } else if (gate.uniform != nullptr) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const std::int64_t j = first_key + lane + 16 * n;
      u[n] = i < s.Tq && j < s.Tk ? edge_uniform(gate, head.key, s, b, h, i, j) : 0.5f;
    }
  } else {
    const PhiloxBlock block = philox4x32(
        {{static_cast<std::uint32_t>(first_key / 4 + lane),
          static_cast<std::uint32_t>(s.Tk - s.Tq + i),
          static_cast<std::uint32_t>((gate.noise.first_batch + b) * s.H + h), gate.noise.layer}},
        static_cast<std::uint32_t>(head.key), static_cast<std::uint32_t>(head.key >> 32));
#pragma unroll
    for (int n = 0; n < 4; ++n) u[n] = open_uniform_from(block.words[n]);
  }
}

template <typename Args>
struct Tile {
  std::int64_t b, h, first_query, offset;  // offset: of a query's position to its index
  const float *q, *k, *v;

  // Of a block whose y and z are head and batch entry.
  __device__ Tile(const Args& args, std::int64_t query_tile)
      : b(blockIdx.z),
        h(blockIdx.y),
        first_query(query_tile * kSide),
        offset(args.shape.Tk - args.shape.Tq) {
    const AttentionShape& s = args.shape;
    const std::int64_t keys = b * s.kv_batch + h / (s.H / s.G) * s.D;
    q = args.q + (b * s.Tq * s.H + h) * s.D;
    k = args.k + keys;
    v = args.v + keys;
  }
};

}  // namespace filigree::cuda::tiled

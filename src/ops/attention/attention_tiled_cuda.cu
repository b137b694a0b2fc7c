// Formulas as in filigree/ops.h.
#include <cuda_runtime_api.h>

#include <type_traits>

#include "ops/attention/attention_tiled_cuda.h"
#include "ops/attention/attention_tiles_cuda.h"
#include "runtime/cuda/devices_cuda.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/shared_memory_cuda.h"
#include "runtime/cuda/sum_cuda.h"

namespace filigree::cuda::tiled {
namespace {

// Shared memory: q, k, v, weights.
template <int D>
__global__ void __launch_bounds__(kThreads) forward(AttentionArgs<float> args) {
  extern __shared__ __align__(16) float memory[];
  float *q = memory, *k = q + kTokens<D>, *v = k + kTokens<D>, *weights = v + kTokens<D>;
  const AttentionShape& s = args.shape;
  // Late queries have the most keys: they begin first.
  const Tile place(args, gridDim.x - 1 - blockIdx.x);
  const HeadGate gate(args.gate, place.h);
  const std::int64_t first_query = place.first_query;
  load_tokens<D>(q, place.q, s.H * D, first_query, s.Tq);
  const std::int64_t last = first_query + kSide < s.Tq ? first_query + kSide : s.Tq;
  const std::int64_t keys = last + place.offset;  // that the block's last query sees

  Rows<D> z;
  z.clear();
  float maximum[4], total[4] = {}, expected[4] = {}, active[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) maximum[i] = -INFINITY;
  for (std::int64_t first_key = 0; first_key < keys; first_key += kSide) {
    __syncthreads();
    load_tokens<D>(k, place.k, s.G * D, first_key, s.Tk);
    load_tokens<D>(v, place.v, s.G * D, first_key, s.Tk);
    __syncthreads();
    float edge[4][4];
    products<D>(edge, q, k);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t query = first_query + ty() + 16 * i, position = query + place.offset;
      float largest = maximum[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        edge[i][j] = first_key + tx() + 16 * j <= position ? edge[i][j] * s.scale : -INFINITY;
        largest = fmaxf(largest, edge[i][j]);
      }
      largest = row_maximum(largest);  // finite: every query sees the first key
      const float shrink = expf(maximum[i] - largest);
      maximum[i] = largest;
      total[i] *= shrink;
      z.scale_row(i, shrink);
      float u[4];
      if (gate.on) four_uniforms(u, args.gate, gate, s, place.b, place.h, query, first_key, tx());
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float score = edge[i][j], weight = expf(score - largest);
        total[i] += weight;
        edge[i][j] = weight;
        if (!gate.on || score == -INFINITY) continue;
        const Gate found = gate_of(score + gate.bias, gate.sampled, u[j]);
        expected[i] += found.expected;
        active[i] += found.open ? 1.0f : 0.0f;
        if (!found.open) edge[i][j] = 0.0f;
      }
    }
    put_edges(weights, edge);
    __syncthreads();
    z.add_product(weights, v);
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum = row_sum(total[i]), expected_sum = row_sum(expected[i]),
                active_sum = row_sum(active[i]);
    z.scale_row(i, 1.0f / sum);
    const std::int64_t query = first_query + ty() + 16 * i;
    if (query >= s.Tq || tx() != 0) continue;
    const std::int64_t row = (place.b * s.H + place.h) * s.Tq + query;
    args.log_sum_exp[row] = maximum[i] + logf(sum);
    if (args.gate.expected_rows != nullptr) args.gate.expected_rows[row] = expected_sum;
    if (args.gate.active_rows != nullptr) args.gate.active_rows[row] = active_sum;
  }
  z.store(args.z + (place.b * s.Tq * s.H + place.h) * D, s.H * D, first_query, s.Tq);
}

// Weights and gates of one tile, after forward(). Shared memory: q, k.
template <int D>
__global__ void __launch_bounds__(kThreads) maps(AttentionArgs<float> args) {
  extern __shared__ __align__(16) float memory[];
  float *q = memory, *k = q + kTokens<D>;
  const AttentionShape& s = args.shape;
  const std::int64_t key_tiles = (s.Tk + kSide - 1) / kSide;
  const Tile place(args, blockIdx.x / key_tiles);
  const HeadGate gate(args.gate, place.h);
  const std::int64_t first_key = blockIdx.x % key_tiles * kSide;
  const bool reached = first_key < place.first_query + kSide + place.offset;
  float edge[4][4] = {};
  if (reached) {
    load_tokens<D>(q, place.q, s.H * D, place.first_query, s.Tq);
    load_tokens<D>(k, place.k, s.G * D, first_key, s.Tk);
    __syncthreads();
    products<D>(edge, q, k);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t query = place.first_query + ty() + 16 * i;
    if (query >= s.Tq) continue;
    const std::int64_t row = (place.b * s.H + place.h) * s.Tq + query;
    float u[4];
    if (gate.on && reached)
      four_uniforms(u, args.gate, gate, s, place.b, place.h, query, first_key, tx());
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t key = first_key + tx() + 16 * j;
      if (key >= s.Tk) continue;
      const float score = edge[i][j] * s.scale;
      const bool open = key <= query + place.offset &&
                        (!gate.on || gate_of(score + gate.bias, gate.sampled, u[j]).open);
      if (args.pattern != nullptr)
        args.pattern[row * s.Tk + key] = open ? expf(score - args.log_sum_exp[row]) : 0.0f;
      if (args.gate.mask != nullptr) args.gate.mask[row * s.Tk + key] = open ? 1.0f : 0.0f;
    }
  }
}

// dq, a row's part of dbias, and for the keys dz . z. Shared memory: q, dz, k, v, gradients of the
// scores.
template <int D>
__global__ void __launch_bounds__(kThreads)
    backward_queries(AttentionGradArgs<float> args, float* totals, float* dbias_rows) {
  extern __shared__ __align__(16) float memory[];
  float *q = memory, *dz = q + kTokens<D>, *k = dz + kTokens<D>, *v = k + kTokens<D>,
        *dscores = v + kTokens<D>;
  const AttentionShape& s = args.shape;
  const Tile place(args, gridDim.x - 1 - blockIdx.x);
  const HeadGate gate(args.gate, place.h);
  const float dexpected = gate.on ? args.dexpected[place.b * s.H + place.h] : 0.0f;
  const std::int64_t first_query = place.first_query,
                     results = (place.b * s.Tq * s.H + place.h) * D;
  load_tokens<D>(q, place.q, s.H * D, first_query, s.Tq);
  load_tokens<D>(dz, args.dz + results, s.H * D, first_query, s.Tq);
  load_tokens<D>(k, args.z + results, s.H * D, first_query, s.Tq);
  __syncthreads();
  float total[4], lse[4], dbias[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t query = first_query + ty() + 16 * i,
                       row = (place.b * s.H + place.h) * s.Tq + query;
    float part = 0.0f;
    for (int d = tx(); d < D; d += 16)
      part = fmaf(dz[(ty() + 16 * i) * kRowStride<D> + d], k[(ty() + 16 * i) * kRowStride<D> + d],
                  part);
    total[i] = row_sum(part);
    lse[i] = query < s.Tq ? args.log_sum_exp[row] : 0.0f;
    if (query < s.Tq && tx() == 0) totals[row] = total[i];
  }
  const std::int64_t last = first_query + kSide < s.Tq ? first_query + kSide : s.Tq;
  Rows<D> dq;
  dq.clear();
  for (std::int64_t first_key = 0; first_key < last + place.offset; first_key += kSide) {
    __syncthreads();
    load_tokens<D>(k, place.k, s.G * D, first_key, s.Tk);
    load_tokens<D>(v, place.v, s.G * D, first_key, s.Tk);
    __syncthreads();
    float edge[4][4], slope[4][4];
    products<D>(edge, q, k);
    products<D>(slope, dz, v);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t query = first_query + ty() + 16 * i;
      float u[4];
      four_uniforms(u, args.gate, gate, s, place.b, place.h, query, first_key, tx());
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool seen = query < s.Tq && first_key + tx() + 16 * j <= query + place.offset;
        const EdgeGradient found = edge_gradient(edge[i][j] * s.scale, lse[i], slope[i][j],
                                                 total[i], args.gate, gate.bias, dexpected, u[j]);
        edge[i][j] = seen ? found.dscore * s.scale : 0.0f;
        if (seen) dbias[i] += found.dgate;
      }
    }
    put_edges(dscores, edge);
    __syncthreads();
    dq.add_product(dscores, k);
  }
  dq.store(args.dq + results, s.H * D, first_query, s.Tq);
  if (dbias_rows == nullptr) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum = row_sum(dbias[i]);
    const std::int64_t query = first_query + ty() + 16 * i;
    if (query < s.Tq && tx() == 0) dbias_rows[(place.b * s.H + place.h) * s.Tq + query] = sum;
  }
}

// dk and dv of 64 keys, over all queries that see them, of all heads of their group. The rows of
// its tiles of edges are keys. Shared memory: k, v, q, dz, edges.
template <int D>
__global__ void __launch_bounds__(kThreads)
    backward_keys(AttentionGradArgs<float> args, const float* totals) {
  extern __shared__ __align__(16) float memory[];
  float *k = memory, *v = k + kTokens<D>, *q = v + kTokens<D>, *dz = q + kTokens<D>,
        *edges = dz + kTokens<D>;
  const AttentionShape& s = args.shape;
  const std::int64_t first_key = static_cast<std::int64_t>(blockIdx.x) * kSide, g = blockIdx.y,
                     b = blockIdx.z, group = s.H / s.G, offset = s.Tk - s.Tq;
  const std::int64_t keys = b * s.kv_batch + g * D;
  load_tokens<D>(k, args.k + keys, s.G * D, first_key, s.Tk);
  load_tokens<D>(v, args.v + keys, s.G * D, first_key, s.Tk);
  // The tile of the first query that sees the first key.
  const std::int64_t first = first_key > offset ? (first_key - offset) / kSide * kSide : 0;
  Rows<D> dk, dv;
  dk.clear(), dv.clear();
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    const HeadGate gate(args.gate, h);
    const float dexpected = gate.on ? args.dexpected[b * s.H + h] : 0.0f;
    const std::int64_t results = (b * s.Tq * s.H + h) * D, rows = (b * s.H + h) * s.Tq;
    for (std::int64_t first_query = first; first_query < s.Tq; first_query += kSide) {
      __syncthreads();
      load_tokens<D>(q, args.q + results, s.H * D, first_query, s.Tq);
      load_tokens<D>(dz, args.dz + results, s.H * D, first_query, s.Tq);
      __syncthreads();
      float edge[4][4], slope[4][4];
      products<D>(edge, k, q);
      products<D>(slope, v, dz);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::int64_t query = first_query + tx() + 16 * j;
        const float lse = query < s.Tq ? args.log_sum_exp[rows + query] : 0.0f;
        const float total = query < s.Tq ? totals[rows + query] : 0.0f;
        float u[4];
        four_uniforms(u, args.gate, gate, s, b, h, query, first_key, ty());
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const bool seen = query < s.Tq && first_key + ty() + 16 * i <= query + offset;
          const EdgeGradient found = edge_gradient(edge[i][j] * s.scale, lse, slope[i][j], total,
                                                   args.gate, gate.bias, dexpected, u[i]);
          edge[i][j] = seen ? found.dscore * s.scale : 0.0f;
          slope[i][j] = seen ? found.weight : 0.0f;
        }
      }
      put_edges(edges, slope);
      __syncthreads();
      dv.add_product(edges, dz);
      __syncthreads();
      put_edges(edges, edge);
      __syncthreads();
      dk.add_product(edges, q);
    }
  }
  dk.store(args.dk + keys, s.G * D, first_key, s.Tk);
  dv.store(args.dv + keys, s.G * D, first_key, s.Tk);
}

template <int D>
constexpr std::size_t bytes_of(int tokens, int edges) {
  return static_cast<std::size_t>(tokens * kTokens<D> + edges * kEdges) * sizeof(float);
}

unsigned tiles(std::int64_t length) { return static_cast<unsigned>((length + kSide - 1) / kSide); }

// Calls `body` with a type whose value is the width of a head.
template <typename Body>
void for_width(std::int64_t D, const Body& body) {
  switch (D) {
    case 16: return body(std::integral_constant<int, 16>());
    case 32: return body(std::integral_constant<int, 32>());
    case 64: return body(std::integral_constant<int, 64>());
    default: return body(std::integral_constant<int, 128>());
  }
}

template <typename Kernel, typename... Args>
void launch(const char* op, Kernel kernel, dim3 grid, std::size_t bytes, const Args&... args) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes, op);
  kernel<<<grid, kThreads, bytes, stream()>>>(args...);
  check_launch(op);
}

}  // namespace

bool takes(const AttentionShape& s) {
  if (!s.plain()) return false;  // no window, no soft cap and no keys behind a query
  if (s.D != 16 && s.D != 32 && s.D != 64 && s.D != 128) return false;
  constexpr std::int64_t kMostBlocks = 65535;  // of the second and third axis of a grid
  if (s.B < 1 || s.Tq < 1 || s.B > kMostBlocks || s.H > kMostBlocks) return false;
  int most = 0;
  if (cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_in_use()) !=
      cudaSuccess)
    return false;
  std::size_t needed = 0;
  for_width(s.D, [&](auto width) { needed = bytes_of<width()>(4, 1); });
  return needed + 2048 <= static_cast<std::size_t>(most);
}

void attention(const AttentionArgs<float>& args) {
  const AttentionShape& s = args.shape;
  const auto H = static_cast<unsigned>(s.H), B = static_cast<unsigned>(s.B);
  for_width(s.D, [&](auto width) {
    constexpr int D = width();
    launch("attention", forward<D>, dim3(tiles(s.Tq), H, B), bytes_of<D>(3, 1), args);
    if (args.pattern != nullptr || args.gate.mask != nullptr)
      launch("attention", maps<D>, dim3(tiles(s.Tq) * tiles(s.Tk), H, B), bytes_of<D>(2, 0), args);
  });
}

void attention_grad(const AttentionGradArgs<float>& args) {
  const AttentionShape& s = args.shape;
  const std::int64_t rows = s.B * s.H * s.Tq;
  const Workspace workspace(static_cast<std::size_t>(2 * rows) * sizeof(float));
  float* totals = workspace.as<float>();
  float* dbias_rows = args.gate.bias != nullptr ? totals + rows : nullptr;
  const auto H = static_cast<unsigned>(s.H), G = static_cast<unsigned>(s.G),
             B = static_cast<unsigned>(s.B);
  for_width(s.D, [&](auto width) {
    constexpr int D = width();
    launch("attention_grad", backward_queries<D>, dim3(tiles(s.Tq), H, B), bytes_of<D>(4, 1), args,
           totals, dbias_rows);
    launch("attention_grad", backward_keys<D>, dim3(tiles(s.Tk), G, B), bytes_of<D>(4, 1), args,
           static_cast<const float*>(totals));
  });
  if (dbias_rows != nullptr) sum_axis(s.B * s.H, s.Tq, 1, 1.0, dbias_rows, args.dbias);
}

}  // namespace filigree::cuda::tiled

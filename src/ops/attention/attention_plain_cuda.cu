// Formulas as in filigree/ops.h. A block works on one row: of queries for z and dq, of keys for
// dk and dv, so that every sum has one owner and a fixed order.

#include "ops/attention/attention_edge_cuda.h"
#include "ops/attention/attention_plain_cuda.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/shared_memory_cuda.h"
#include "runtime/cuda/sum_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kEachThreads = 256;
constexpr int kQueryPiece = 512;  // queries whose weights a block of keys holds at a time

// x . y over D elements by one warp.
template <typename T>
__device__ inline float dot(const float* x, const T* y, std::int64_t D) {
  float total = 0.0f;
  for (std::int64_t c = threadIdx.x % 32; c < D; c += 32) total += x[c] * to_float(y[c]);
  return warp_sum(total);
}

__device__ inline float capped(const AttentionShape& s, float score) {
  return s.soft_cap > 0.0f ? s.soft_cap * tanhf(score / s.soft_cap) : score;
}

// The derivative of a capped score by what it was, times the scale.
__device__ inline float score_slope(const AttentionShape& s, float score) {
  if (s.soft_cap <= 0.0f) return s.scale;
  const float share = score / s.soft_cap;
  return s.scale * (1.0f - share * share);
}

template <typename T>
__device__ inline void load_row(const T* from, std::int64_t D, float* to) {
  for (std::int64_t c = threadIdx.x; c < D; c += kThreads) to[c] = to_float(from[c]);
}

// Shared memory: Tk scores, then D numbers of the query.
template <typename T>
__global__ void attend(AttentionArgs<T> args) {
  extern __shared__ float memory[];
  __shared__ float shared[kWarps];
  const AttentionShape& s = args.shape;
  const std::int64_t i = blockIdx.x % s.Tq, h = blockIdx.x / s.Tq % s.H,
                     b = blockIdx.x / (s.Tq * s.H);
  const std::int64_t row = (b * s.H + h) * s.Tq + i, position = s.Tk - s.Tq + i;
  const std::int64_t first = first_key(s, position), count = end_key(s, position);
  const std::int64_t kv = b * s.kv_batch + h / (s.H / s.G) * s.D, stride = s.G * s.D;
  const std::int64_t query = ((b * s.Tq + i) * s.H + h) * s.D;
  float* weights = memory;
  float* q = memory + s.Tk;
  load_row(args.q + query, s.D, q);
  __syncthreads();
  for (std::int64_t j = first + threadIdx.x / 32; j < count; j += kWarps) {
    const float score = capped(s, dot(q, args.k + kv + j * stride, s.D) * s.scale);
    if (threadIdx.x % 32 == 0) weights[j] = score;
  }
  __syncthreads();
  float maximum = -INFINITY;
  for (std::int64_t j = first + threadIdx.x; j < count; j += kThreads)
    maximum = fmaxf(maximum, weights[j]);
  maximum = block_maximum(maximum, shared);

  const GateArgs& gate = args.gate;
  const std::uint64_t key = gate_noise_key(gate.noise);
  const float bias = gate.bias != nullptr ? gate.bias[h] : 0.0f;
  float total = 0.0f, expected = 0.0f, active = 0.0f;
  for (std::int64_t j = first + threadIdx.x; j < count; j += kThreads) {
    const float score = weights[j], a = expf(score - maximum);
    total += a;
    float open = 1.0f;
    if (gate.bias != nullptr) {
      const float u = gate.sample ? edge_uniform(gate, key, s, b, h, i, j) : 0.5f;
      const Gate g = gate_of(score + bias, gate.sample, u);
      open = g.open ? 1.0f : 0.0f;
      expected += g.expected;
      active += open;
      if (gate.mask != nullptr) gate.mask[row * s.Tk + j] = open;
    }
    weights[j] = a * open;
  }
  total = block_sum(total, shared);
  const float inverse = 1.0f / total;
  if (gate.bias != nullptr) {
    expected = block_sum(expected, shared);
    active = block_sum(active, shared);
    if (gate.mask != nullptr)
      for (std::int64_t j = threadIdx.x; j < s.Tk; j += kThreads)
        if (j < first || j >= count) gate.mask[row * s.Tk + j] = 0.0f;
  }
  if (threadIdx.x == 0) {
    args.log_sum_exp[row] = maximum + logf(total);
    if (gate.expected_rows != nullptr) gate.expected_rows[row] = expected;
    if (gate.active_rows != nullptr) gate.active_rows[row] = active;
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < s.D; c += kThreads) {
    float z = 0.0f;
    for (std::int64_t j = first; j < count; ++j)
      z += weights[j] * to_float(args.v[kv + j * stride + c]);
    args.z[query + c] = from_float<T>(z * inverse);
  }
  if (args.pattern != nullptr)
    for (std::int64_t j = threadIdx.x; j < s.Tk; j += kThreads)
      args.pattern[row * s.Tk + j] = j >= first && j < count ? weights[j] * inverse : 0.0f;
}

// dq of one query, the expected value of its gradient for the key rows, and its part of dbias.
// Shared memory: Tk scores, Tk products dz . v, D numbers of q, D of dz.
template <typename T>
__global__ void attend_grad_queries(AttentionGradArgs<T> args, float* expected_values,
                                    float* dbias_rows) {
  extern __shared__ float memory[];
  __shared__ float shared[kWarps];
  const AttentionShape& s = args.shape;
  const std::int64_t i = blockIdx.x % s.Tq, h = blockIdx.x / s.Tq % s.H,
                     b = blockIdx.x / (s.Tq * s.H);
  const std::int64_t row = (b * s.H + h) * s.Tq + i, position = s.Tk - s.Tq + i;
  const std::int64_t first = first_key(s, position), count = end_key(s, position);
  const std::int64_t kv = b * s.kv_batch + h / (s.H / s.G) * s.D, stride = s.G * s.D;
  const std::int64_t query = ((b * s.Tq + i) * s.H + h) * s.D;
  float* scores = memory;
  float* products = scores + s.Tk;
  float* q = products + s.Tk;
  float* dz = q + s.D;
  load_row(args.q + query, s.D, q);
  load_row(args.dz + query, s.D, dz);
  __syncthreads();
  for (std::int64_t j = first + threadIdx.x / 32; j < count; j += kWarps) {
    const float score = capped(s, dot(q, args.k + kv + j * stride, s.D) * s.scale);
    const float gv = dot(dz, args.v + kv + j * stride, s.D);
    if (threadIdx.x % 32 == 0) scores[j] = score, products[j] = gv;
  }
  __syncthreads();
  const GateArgs& gate = args.gate;
  const std::uint64_t key = gate_noise_key(gate.noise);
  const bool sampled = gate.bias != nullptr && gate.sample;
  const float bias = gate.bias != nullptr ? gate.bias[h] : 0.0f;
  const float dexpected = gate.bias != nullptr ? args.dexpected[b * s.H + h] : 0.0f;
  const float lse = args.log_sum_exp[row];
  float expected_value = 0.0f;
  for (std::int64_t j = first + threadIdx.x; j < count; j += kThreads) {
    const float u = sampled ? edge_uniform(gate, key, s, b, h, i, j) : 0.5f;
    expected_value +=
        edge_gradient(scores[j], lse, products[j], 0.0f, gate, bias, 0.0f, u).weight * products[j];
  }
  expected_value = block_sum(expected_value, shared);
  float dbias = 0.0f;
  for (std::int64_t j = first + threadIdx.x; j < count; j += kThreads) {
    const float u = sampled ? edge_uniform(gate, key, s, b, h, i, j) : 0.5f;
    const EdgeGradient edge =
        edge_gradient(scores[j], lse, products[j], expected_value, gate, bias, dexpected, u);
    dbias += edge.dgate;
    scores[j] = edge.dscore * score_slope(s, scores[j]);
  }
  dbias = block_sum(dbias, shared);
  if (threadIdx.x == 0) {
    expected_values[row] = expected_value;
    if (dbias_rows != nullptr) dbias_rows[row] = dbias;
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < s.D; c += kThreads) {
    float dq = 0.0f;
    for (std::int64_t j = first; j < count; ++j)
      dq += scores[j] * to_float(args.k[kv + j * stride + c]);
    args.dq[query + c] = from_float<T>(dq);
  }
}

// dk and dv of one key, over all queries that see it, of all heads of its group. Shared memory: D
// numbers of k, D of v, D sums of dk, D of dv, and two weights a query of the piece at hand.
template <typename T>
__global__ void attend_grad_keys(AttentionGradArgs<T> args, const float* expected_values) {
  extern __shared__ float memory[];
  const AttentionShape& s = args.shape;
  const std::int64_t j = blockIdx.x % s.Tk, g = blockIdx.x / s.Tk % s.G,
                     b = blockIdx.x / (s.Tk * s.G);
  const std::int64_t group = s.H / s.G, past = s.Tk - s.Tq;
  const std::int64_t place = b * s.kv_batch + (j * s.G + g) * s.D;
  float* k = memory;
  float* v = k + s.D;
  float* dk = v + s.D;
  float* dv = dk + s.D;
  float* dscores = dv + s.D;
  float* weights = dscores + kQueryPiece;
  load_row(args.k + place, s.D, k);
  load_row(args.v + place, s.D, v);
  for (std::int64_t c = threadIdx.x; c < s.D; c += kThreads) dk[c] = 0.0f, dv[c] = 0.0f;
  const GateArgs& gate = args.gate;
  const std::uint64_t key = gate_noise_key(gate.noise);
  const bool sampled = gate.bias != nullptr && gate.sample;
  // The queries that see the key.
  const std::int64_t first = !s.bidirectional && j > past ? j - past : 0;
  const std::int64_t left = s.window > 0 ? j + s.window - past : s.Tq;
  const std::int64_t end = left < s.Tq ? left : s.Tq;
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    const float bias = gate.bias != nullptr ? gate.bias[h] : 0.0f;
    const float dexpected = gate.bias != nullptr ? args.dexpected[b * s.H + h] : 0.0f;
    for (std::int64_t i0 = first; i0 < end; i0 += kQueryPiece) {
      const std::int64_t queries = end - i0 < kQueryPiece ? end - i0 : kQueryPiece;
      __syncthreads();
      for (std::int64_t n = threadIdx.x / 32; n < queries; n += kWarps) {
        const std::int64_t i = i0 + n, row = (b * s.H + h) * s.Tq + i;
        const std::int64_t query = ((b * s.Tq + i) * s.H + h) * s.D;
        const float score = capped(s, dot(k, args.q + query, s.D) * s.scale);
        const float gv = dot(v, args.dz + query, s.D);
        if (threadIdx.x % 32 != 0) continue;
        const float u = sampled ? edge_uniform(gate, key, s, b, h, i, j) : 0.5f;
        const EdgeGradient edge = edge_gradient(score, args.log_sum_exp[row], gv,
                                                expected_values[row], gate, bias, dexpected, u);
        dscores[n] = edge.dscore * score_slope(s, score);
        weights[n] = edge.weight;
      }
      __syncthreads();
      for (std::int64_t c = threadIdx.x; c < s.D; c += kThreads) {
        float dk_sum = 0.0f, dv_sum = 0.0f;
        for (std::int64_t n = 0; n < queries; ++n) {
          const std::int64_t query = ((b * s.Tq + i0 + n) * s.H + h) * s.D + c;
          dk_sum += dscores[n] * to_float(args.q[query]);
          dv_sum += weights[n] * to_float(args.dz[query]);
        }
        dk[c] += dk_sum, dv[c] += dv_sum;
      }
    }
  }
  for (std::int64_t c = threadIdx.x; c < s.D; c += kThreads) {
    args.dk[place + c] = from_float<T>(dk[c]);
    args.dv[place + c] = from_float<T>(dv[c]);
  }
}

__device__ inline bool looks_at(const AttentionShape& s, std::int64_t i, std::int64_t j) {
  const std::int64_t position = s.Tk - s.Tq + i;
  return j < end_key(s, position) && j >= first_key(s, position);
}

template <typename T>
__global__ void mask_each(AttentionShape s, T* scores) {
  const std::int64_t all = s.B * s.H * s.Tq * s.Tk;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kEachThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kEachThreads + threadIdx.x;
       at < all; at += threads) {
    const std::int64_t j = at % s.Tk, i = at / s.Tk % s.Tq;
    scores[at] =
        from_float<T>(looks_at(s, i, j) ? capped(s, to_float(scores[at]) * s.scale) : -INFINITY);
  }
}

template <typename T>
__global__ void mask_gradient_each(AttentionShape s, const T* scores, const T* grad, T* out) {
  const std::int64_t all = s.B * s.H * s.Tq * s.Tk;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kEachThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kEachThreads + threadIdx.x;
       at < all; at += threads) {
    const std::int64_t j = at % s.Tk, i = at / s.Tk % s.Tq;
    const bool seen = looks_at(s, i, j);
    const float score = seen && s.soft_cap > 0.0f ? to_float(scores[at]) : 0.0f;
    out[at] = from_float<T>(seen ? to_float(grad[at]) * score_slope(s, score) : 0.0f);
  }
}

template <typename T>
__global__ void gate_each(GateMaskArgs<T> args) {
  const GateArgs& gate = args.gate;
  const std::uint64_t key = gate_noise_key(gate.noise);
  AttentionShape s;
  s.B = args.B, s.H = args.H, s.Tq = args.Tq, s.Tk = args.Tk;
  const std::int64_t all = args.B * args.H * args.Tq * args.Tk;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kEachThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kEachThreads + threadIdx.x;
       at < all; at += threads) {
    const std::int64_t j = at % s.Tk, i = at / s.Tk % s.Tq, h = at / (s.Tk * s.Tq) % s.H,
                       b = at / (s.Tk * s.Tq * s.H);
    const float u = gate.sample ? edge_uniform(gate, key, s, b, h, i, j) : 0.5f;
    const Gate g = gate_of(to_float(args.scores[at]) + gate.bias[h], gate.sample, u);
    args.mask[at] = from_float<T>(g.open ? 1.0f : 0.0f);
    if (args.slopes != nullptr) args.slopes[at] = g.relaxed * (1.0f - g.relaxed);
  }
}

// Whole 16 bytes: the compiler reads shared memory in such pieces and may read a piece to its end.
std::size_t floats(std::int64_t count) {
  return static_cast<std::size_t>((count + 3) / 4 * 4) * sizeof(float);
}

}  // namespace

namespace plain {

template <typename T>
void attention(const AttentionArgs<T>& args) {
  const AttentionShape& s = args.shape;
  const std::int64_t rows = s.B * s.H * s.Tq;
  if (rows == 0) return;
  const std::size_t bytes = floats(s.Tk + s.D);
  allow_shared_memory(reinterpret_cast<const void*>(attend<T>), bytes, "attention");
  attend<<<static_cast<unsigned>(rows), kThreads, bytes, stream()>>>(args);
  check_launch("attention");
}

template <typename T>
void attention_grad(const AttentionGradArgs<T>& args) {
  const AttentionShape& s = args.shape;
  const std::int64_t rows = s.B * s.H * s.Tq;
  if (rows == 0) return;
  const Workspace workspace(floats(2 * rows));
  float* expected_values = workspace.as<float>();
  float* dbias_rows = args.gate.bias != nullptr ? expected_values + rows : nullptr;
  const std::size_t query_bytes = floats(2 * s.Tk + 2 * s.D);
  allow_shared_memory(reinterpret_cast<const void*>(attend_grad_queries<T>), query_bytes,
                      "attention_grad");
  attend_grad_queries<<<static_cast<unsigned>(rows), kThreads, query_bytes, stream()>>>(
      args, expected_values, dbias_rows);
  check_launch("attention_grad");
  const std::size_t key_bytes = floats(4 * s.D + 2 * kQueryPiece);
  allow_shared_memory(reinterpret_cast<const void*>(attend_grad_keys<T>), key_bytes,
                      "attention_grad");
  attend_grad_keys<<<static_cast<unsigned>(s.B * s.G * s.Tk), kThreads, key_bytes, stream()>>>(
      args, expected_values);
  check_launch("attention_grad");
  if (dbias_rows != nullptr) sum_axis(s.B * s.H, s.Tq, 1, 1.0, dbias_rows, args.dbias);
}

template void attention(const AttentionArgs<float>&);
template void attention(const AttentionArgs<Bf16>&);
template void attention_grad(const AttentionGradArgs<float>&);
template void attention_grad(const AttentionGradArgs<Bf16>&);

}  // namespace plain

template <typename T>
void mask_scores(const AttentionShape& s, T* scores) {
  const std::int64_t all = s.B * s.H * s.Tq * s.Tk;
  if (all == 0) return;
  mask_each<T><<<blocks_for(all, kEachThreads * 4), kEachThreads, 0, stream()>>>(s, scores);
  check_launch("mask_scores");
}

template <typename T>
void mask_score_gradient(const AttentionShape& s, const T* scores, const T* grad, T* out) {
  const std::int64_t all = s.B * s.H * s.Tq * s.Tk;
  if (all == 0) return;
  mask_gradient_each<T>
      <<<blocks_for(all, kEachThreads * 4), kEachThreads, 0, stream()>>>(s, scores, grad, out);
  check_launch("mask_score_gradient");
}

template <typename T>
void gate_mask(const GateMaskArgs<T>& args) {
  const std::int64_t all = args.B * args.H * args.Tq * args.Tk;
  if (all == 0) return;
  gate_each<<<blocks_for(all, kEachThreads * 4), kEachThreads, 0, stream()>>>(args);
  check_launch("gate_mask");
}

template void mask_scores(const AttentionShape&, float*);
template void mask_scores(const AttentionShape&, Bf16*);
template void mask_score_gradient(const AttentionShape&, const float*, const float*, float*);
template void mask_score_gradient(const AttentionShape&, const Bf16*, const Bf16*, Bf16*);
template void gate_mask(const GateMaskArgs<float>&);
template void gate_mask(const GateMaskArgs<Bf16>&);

}  // namespace filigree::cuda

// Kernels of attention_cpu.cpp, compiled once per vector level.
//
// A job holds one head's keys and values, packed for the tile kernel, and walks over blocks of
// queries; the scores of a block live in a scratch matrix of kQueryBlock rows.

#include "runtime/cpu/simd_rows.inl"
#include "runtime/cpu/simd_tile.inl"

inline std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// C[M, N] (+)= A[M, K] B[K, N]; N is a multiple of kLanes and B's rows are contiguous.
inline void block_multiply(std::int64_t M, std::int64_t N, std::int64_t K, const float* A,
                           std::int64_t a_row, std::int64_t a_col, const float* B,
                           std::int64_t b_row, float* C, std::int64_t c_row, bool accumulate) {
  std::int64_t vectors_left = N / kLanes;
  for (std::int64_t n = 0; vectors_left > 0;) {
    // Four vectors are two pairs rather than three and one.
    const std::int64_t vectors =
        vectors_left == 4 ? 2 : (vectors_left < kTileVectors ? vectors_left : kTileVectors);
    for (std::int64_t m = 0; m < M; m += kTileRows) {
      const std::int64_t rows = M - m < kTileRows ? M - m : kTileRows;
      tile_kernel<false>(static_cast<int>(rows), static_cast<int>(vectors))(
          K, {A + m * a_row, B + n, a_row, a_col, b_row}, C + m * c_row + n, c_row, accumulate);
    }
    n += vectors * kLanes;
    vectors_left -= vectors;
  }
}

// x [count, D] with row stride -> transposed[panel][D][kTileCols], zero beyond `count`.
inline void pack_transposed(const float* x, std::int64_t stride, std::int64_t count, std::int64_t D,
                            float* transposed) {
  for (std::int64_t j0 = 0; j0 < count; j0 += kTileCols) {
    float* panel = transposed + j0 * D;
    const std::int64_t width = count - j0 < kTileCols ? count - j0 : kTileCols;
    for (std::int64_t j = 0; j < width; ++j) {
      const float* from = x + (j0 + j) * stride;
      for (std::int64_t c = 0; c < D; ++c) panel[c * kTileCols + j] = from[c];
    }
    for (std::int64_t c = 0; c < D; ++c)
      for (std::int64_t j = width; j < kTileCols; ++j) panel[c * kTileCols + j] = 0.0f;
  }
}

// x [count, D] with row stride -> padded[count][width], zero beyond D.
inline void pack_rows(const float* x, std::int64_t stride, std::int64_t count, std::int64_t D,
                      std::int64_t width, float* padded) {
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t c = 0; c < D; ++c) padded[j * width + c] = x[j * stride + c];
    for (std::int64_t c = D; c < width; ++c) padded[j * width + c] = 0.0f;
  }
}

// out[rows][ld] = x [rows, D] times the transposed panels, for the first `keys` keys (rounded up to
// a whole panel).
inline void multiply_transposed(const float* x, std::int64_t stride, std::int64_t rows,
                                std::int64_t D, const float* panels, std::int64_t keys, float* out,
                                std::int64_t ld) {
  for (std::int64_t j = 0; j < keys; j += kTileCols)
    block_multiply(rows, kTileCols, D, x, stride, 1, panels + j * D, kTileCols, out + j, ld, false);
}

// x[j] = exp(scale * x[j] - shift) for first <= j < count, zero elsewhere up to `padded` (a
// multiple of kLanes); returns the sum.
inline float exponentiate_row(float* x, std::int64_t first, std::int64_t count, std::int64_t padded,
                              float scale, float shift) {
  Vec total = {};
  std::int64_t j = 0;
  for (; j + kLanes <= first; j += kLanes) store(x + j, Vec{});
  if (j < first) {  // the vector in which the window begins
    Vec e = exp(load(x + j) * scale - shift);
    for (int lane = 0; lane < kLanes; ++lane)
      if (j + lane < first || j + lane >= count) e[lane] = 0.0f;
    store(x + j, e);
    total += e;
    j += kLanes;
  }
  for (; j + kLanes <= count; j += kLanes) {
    const Vec e = exp(load(x + j) * scale - shift);
    store(x + j, e);
    total += e;
  }
  if (j < count) {
    Vec e = exp(load(x + j) * scale - shift);
    for (int lane = 0; lane < kLanes; ++lane)
      if (j + lane >= count) e[lane] = 0.0f;
    store(x + j, e);
    total += e;
    j += kLanes;
  }
  for (; j < padded; j += kLanes) store(x + j, Vec{});
  return sum(total);
}

// Products q . k of one row, so that times the scale they are the capped scores: c tanh(s / c) is
// what x becomes. With `slopes`, the derivative of each by what it was.
inline void cap_row(const AttentionShape& s, float* x, std::int64_t padded,
                    float* slopes = nullptr) {
  if (s.soft_cap <= 0.0f) return;
  const float in = s.scale / s.soft_cap, out = s.soft_cap / s.scale;
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Vec t = tanh(load(x + j) * in);
    store(x + j, t * out);
    if (slopes != nullptr) store(slopes + j, 1.0f - t * t);
  }
}

#include "ops/attention/gate_body.inl"

// Few queries against many keys, as in generation: dot products straight from the cache.
inline void attend_directly(const AttentionArgs<>& args, std::int64_t b, std::int64_t h,
                            float* scores, float* noise) {
  const AttentionShape& s = args.shape;
  const std::int64_t kv = b * s.kv_batch + h / (s.H / s.G) * s.D, stride = s.G * s.D;
  for (std::int64_t i = 0; i < s.Tq; ++i) {
    const std::int64_t row = (b * s.Tq + i) * s.H + h, position = s.Tk - s.Tq + i;
    const std::int64_t first = first_key(s, position), count = end_key(s, position);
    const std::int64_t padded = round_up(count, kLanes);
    const float* q = args.q + row * s.D;
    for (std::int64_t j = first; j < count; ++j) {
      const float* k = args.k + kv + j * stride;
      Vec partial = {};
      std::int64_t c = 0;
      for (; c + kLanes <= s.D; c += kLanes) partial += load(q + c) * load(k + c);
      float dot = sum(partial);
      for (; c < s.D; ++c) dot += q[c] * k[c];
      scores[j] = dot;
    }
    for (std::int64_t j = 0; j < first; ++j) scores[j] = 0.0f;  // nothing reads what lay there
    cap_row(s, scores, padded);
    const float maximum = s.scale * row_maximum(scores + first, count - first);
    const float total = args.gate.bias != nullptr
                            ? gate_row(args, b, h, i, scores, first, count, padded, maximum, noise)
                            : exponentiate_row(scores, first, count, padded, s.scale, maximum);
    const float inverse = 1.0f / total;
    float* z = args.z + row * s.D;
    for (std::int64_t c = 0; c < s.D; ++c) z[c] = 0.0f;
    for (std::int64_t j = first; j < count; ++j) {
      const float weight = scores[j] * inverse;
      const float* v = args.v + kv + j * stride;
      for (std::int64_t c = 0; c < s.D; ++c) z[c] += weight * v[c];
    }
    args.log_sum_exp[(b * s.H + h) * s.Tq + i] = maximum + __builtin_logf(total);
    if (args.pattern != nullptr) {
      float* pattern = args.pattern + ((b * s.H + h) * s.Tq + i) * s.Tk;
      for (std::int64_t j = 0; j < s.Tk; ++j) pattern[j] = j < count ? scores[j] * inverse : 0.0f;
    }
  }
}

// Queries [begin, end) of one head.
inline void attend(const AttentionArgs<>& args, std::int64_t b, std::int64_t h, std::int64_t begin,
                   std::int64_t end) {
  const AttentionShape& s = args.shape;
  const std::int64_t past = s.Tk - s.Tq, keys_most = end_key(s, past + end - 1);
  const std::int64_t keys_padded = round_up(keys_most, kTileCols), width = round_up(s.D, kLanes);
  const std::int64_t kv = b * s.kv_batch + h / (s.H / s.G) * s.D;
  float* panels = scratch(static_cast<std::size_t>(keys_padded * s.D + keys_most * width +
                                                   kQueryBlock * keys_padded + kQueryBlock * width +
                                                   round_up(keys_most, 64) + 64));
  float* values = panels + keys_padded * s.D;
  float* scores = values + keys_most * width;
  float* mixed = scores + kQueryBlock * keys_padded;
  float* noise = mixed + kQueryBlock * width;
  pack_transposed(args.k + kv, s.G * s.D, keys_most, s.D, panels);
  pack_rows(args.v + kv, s.G * s.D, keys_most, s.D, width, values);
  for (std::int64_t i0 = begin; i0 < end; i0 += kQueryBlock) {
    const std::int64_t rows = end - i0 < kQueryBlock ? end - i0 : kQueryBlock;
    const std::int64_t keys = end_key(s, past + i0 + rows - 1);
    const float* q = args.q + ((b * s.Tq + i0) * s.H + h) * s.D;
    multiply_transposed(q, s.H * s.D, rows, s.D, panels, keys, scores,
                        keys_padded);  // [rows, keys]
    for (std::int64_t i = 0; i < rows; ++i) {
      float* row = scores + i * keys_padded;
      const std::int64_t first = first_key(s, past + i0 + i), count = end_key(s, past + i0 + i);
      const std::int64_t padded = round_up(keys, kLanes);
      cap_row(s, row, padded);
      const float maximum = s.scale * row_maximum(row + first, count - first);
      const float total =
          args.gate.bias != nullptr
              ? gate_row(args, b, h, i0 + i, row, first, count, padded, maximum, noise)
              : exponentiate_row(row, first, count, padded, s.scale, maximum);
      const float inverse = 1.0f / total;
      for (std::int64_t j = 0; j < count; ++j) row[j] *= inverse;
      args.log_sum_exp[(b * s.H + h) * s.Tq + i0 + i] = maximum + __builtin_logf(total);
      if (args.pattern != nullptr) {
        float* pattern = args.pattern + ((b * s.H + h) * s.Tq + i0 + i) * s.Tk;
        __builtin_memcpy(pattern, row, static_cast<std::size_t>(count) * sizeof(float));
        for (std::int64_t j = count; j < s.Tk; ++j) pattern[j] = 0.0f;
      }
    }
    block_multiply(rows, width, keys, scores, keys_padded, 1, values, width, mixed, width,
                   false);  // [rows, keys] [keys, width]
    for (std::int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(args.z + ((b * s.Tq + i0 + i) * s.H + h) * s.D, mixed + i * width,
                       static_cast<std::size_t>(s.D) * sizeof(float));
  }
}

// All query heads of key head g; dk and dv of that head are summed here, by one thread.
//
//   dA = dz v^T    dS = A (dA - sum_j A dA) scale    dq = dS k    dk = dS^T q    dv = A^T dz
inline void attend_grad(const AttentionGradArgs<>& args, std::int64_t b, std::int64_t g) {
  const AttentionShape& s = args.shape;
  const std::int64_t keys_padded = round_up(s.Tk, kTileCols), width = round_up(s.D, kLanes);
  const std::int64_t kv = b * s.kv_batch + g * s.D, kv_stride = s.G * s.D, stride = s.H * s.D;
  const std::int64_t past = s.Tk - s.Tq, group = s.H / s.G;
  float* k_panels = scratch(static_cast<std::size_t>(
      2 * keys_padded * s.D + 3 * s.Tk * width + 2 * kQueryBlock * keys_padded +
      3 * kQueryBlock * width + 2 * round_up(s.Tk, 64) + 128));
  float* v_panels = k_panels + keys_padded * s.D;
  float* k_rows = v_panels + keys_padded * s.D;
  float* dk = k_rows + s.Tk * width;
  float* dv = dk + s.Tk * width;
  float* weights = dv + s.Tk * width;
  float* dscores = weights + kQueryBlock * keys_padded;
  float* q_rows = dscores + kQueryBlock * keys_padded;
  float* dz_rows = q_rows + kQueryBlock * width;
  float* dq_rows = dz_rows + kQueryBlock * width;
  float* noise = dq_rows + kQueryBlock * width;
  float* slopes = noise + round_up(s.Tk, 64) + 64;
  pack_transposed(args.k + kv, kv_stride, s.Tk, s.D, k_panels);
  pack_transposed(args.v + kv, kv_stride, s.Tk, s.D, v_panels);
  pack_rows(args.k + kv, kv_stride, s.Tk, s.D, width, k_rows);
  __builtin_memset(dk, 0, static_cast<std::size_t>(2 * s.Tk * width) * sizeof(float));
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    double dbias = 0.0;
    for (std::int64_t i0 = 0; i0 < s.Tq; i0 += kQueryBlock) {
      const std::int64_t rows = s.Tq - i0 < kQueryBlock ? s.Tq - i0 : kQueryBlock;
      const std::int64_t keys = end_key(s, past + i0 + rows - 1);
      const std::int64_t first = ((b * s.Tq + i0) * s.H + h) * s.D;
      pack_rows(args.q + first, stride, rows, s.D, width, q_rows);
      pack_rows(args.dz + first, stride, rows, s.D, width, dz_rows);
      multiply_transposed(q_rows, width, rows, s.D, k_panels, keys, weights, keys_padded);
      multiply_transposed(dz_rows, width, rows, s.D, v_panels, keys, dscores, keys_padded);
      for (std::int64_t i = 0; i < rows; ++i) {
        float* weight = weights + i * keys_padded;
        float* dscore = dscores + i * keys_padded;
        const std::int64_t count = end_key(s, past + i0 + i), padded = round_up(keys, kLanes);
        const std::int64_t seen = first_key(s, past + i0 + i);
        cap_row(s, weight, padded, slopes);
        if (args.gate.bias != nullptr) {
          dbias += static_cast<double>(
              gate_grad_row(args, b, h, i0 + i, weight, dscore, seen, count, padded, noise));
        } else {
          exponentiate_row(weight, seen, count, padded, s.scale,
                           args.log_sum_exp[(b * s.H + h) * s.Tq + i0 + i]);
          Vec partial = {};
          for (std::int64_t j = 0; j < padded; j += kLanes)
            partial += load(weight + j) * load(dscore + j);
          const float expected = sum(partial);
          for (std::int64_t j = 0; j < padded; ++j)
            dscore[j] = weight[j] * (dscore[j] - expected) * s.scale;
        }
        if (s.soft_cap > 0.0f)
          for (std::int64_t j = 0; j < padded; ++j) dscore[j] *= slopes[j];
      }
      block_multiply(rows, width, keys, dscores, keys_padded, 1, k_rows, width, dq_rows, width,
                     false);  // [rows, keys] [keys, width]
      block_multiply(keys, width, rows, dscores, 1, keys_padded, q_rows, width, dk, width,
                     true);  // [keys, rows] [rows, width]
      block_multiply(keys, width, rows, weights, 1, keys_padded, dz_rows, width, dv, width,
                     true);  // [keys, rows] [rows, width]
      for (std::int64_t i = 0; i < rows; ++i)
        __builtin_memcpy(args.dq + first + i * stride, dq_rows + i * width,
                         static_cast<std::size_t>(s.D) * sizeof(float));
    }
    if (args.gate.bias != nullptr) args.dbias[b * s.H + h] = static_cast<float>(dbias);
  }
  for (std::int64_t j = 0; j < s.Tk; ++j) {
    const std::size_t bytes = static_cast<std::size_t>(s.D) * sizeof(float);
    __builtin_memcpy(args.dk + kv + j * kv_stride, dk + j * width, bytes);
    __builtin_memcpy(args.dv + kv + j * kv_stride, dv + j * width, bytes);
  }
}

// The gates of flash attention: noise in registers, from the counters of gate_noise.h.
//
// One Philox block serves four keys, 16 apart, of one query, and the kernels arrange their tiles so
// that one thread holds all four. Of the ten rounds the first three split into a part of the key's
// counter and a part of the query's:
//
//   counter (c0: key, c1: query, c2: batch and head, c3: layer)
//   round 1:  a0 = hi(M1 c2) ^ c1 ^ k0    a1 = lo(M1 c2)     a2 = hi(M0 c0) ^ c3 ^ k1    a3 = lo(M0
//   c0) round 2:  b0 = hi(M1 a2) ^ a1 ^ k0'   b1 = lo(M1 a2)     b2 = hi(M0 a0) ^ a3 ^ k1'   b3 =
//   lo(M0 a0) round 3:  hi(M1 b2) ^ b1 ^ k0''       lo(M1 b2)          hi(M0 b0) ^ b3 ^ k1'' lo(M0
//   b0)
//
// a2, a3, b0, b1 depend on the key alone, a0 and b3 on the query alone: each is computed once for
// many edges.
#pragma once

#include <cstdint>

#include "filigree/gate_noise.h"
#include "ops/attention/flash_attention_cuda.h"
#include "ops/attention/flash_tiles_cuda.h"

namespace filigree::cuda::flash {

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;

// The round keys, as kernel arguments: the xors then read them from constant memory.
struct NoiseKeys {
  std::uint32_t k0[10], k1[10];
  std::uint32_t layer, first_batch;
};

inline NoiseKeys noise_keys(const GateNoise& noise) {
  NoiseKeys keys;
  const std::uint64_t key = gate_noise_key(noise);
  for (std::uint32_t round = 0; round < 10; ++round) {
    keys.k0[round] = static_cast<std::uint32_t>(key) + round * 0x9E3779B9u;
    keys.k1[round] = static_cast<std::uint32_t>(key >> 32) + round * 0xBB67AE85u;
  }
  keys.layer = noise.layer;
  keys.first_batch = noise.first_batch;
  return keys;
}

struct HighLow {
  std::uint32_t high, low;
};
__device__ __forceinline__ HighLow wide_product(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

// The query's part.
struct QueryNoise {
  std::uint32_t b2, b3;  // b2 without a3
};
__device__ __forceinline__ QueryNoise query_noise(const NoiseKeys& keys, HighLow head,
                                                  std::uint32_t query) {
  const HighLow p = wide_product(kMultiplier0, head.high ^ query ^ keys.k0[0]);
  return {p.high ^ keys.k1[1], p.low};
}

// The key's part; `counter` is (j / 64) * 16 + j % 16.
struct KeyNoise {
  std::uint32_t a3, b1, high, low;  // the last two: M0 b0
};
__device__ __forceinline__ KeyNoise key_noise(const NoiseKeys& keys, HighLow head,
                                              std::uint32_t counter) {
  const HighLow p = wide_product(kMultiplier0, counter);
  const HighLow q = wide_product(kMultiplier1, p.high ^ keys.layer ^ keys.k1[0]);
  const HighLow r = wide_product(kMultiplier0, q.high ^ head.low ^ keys.k0[1]);
  return {p.low, q.low, r.high, r.low};
}

// Batch and head's part: M1 c2.
__device__ __forceinline__ HighLow head_noise(std::uint32_t row) {
  return wide_product(kMultiplier1, row);
}

// The four words of keys j, j + 16, j + 32, j + 48.
__device__ __forceinline__ void noise_words(std::uint32_t (&words)[4], const NoiseKeys& keys,
                                            const QueryNoise& query, const KeyNoise& key) {
  const HighLow p = wide_product(kMultiplier1, query.b2 ^ key.a3);
  std::uint32_t w0 = p.high ^ key.b1 ^ keys.k0[2], w1 = p.low;
  std::uint32_t w2 = key.high ^ query.b3 ^ keys.k1[2], w3 = key.low;
#pragma unroll
  for (int round = 3; round < 10; ++round) {
    const HighLow x = wide_product(kMultiplier0, w0), y = wide_product(kMultiplier1, w2);
    w0 = y.high ^ w1 ^ keys.k0[round], w1 = y.low;
    w2 = x.high ^ w3 ^ keys.k1[round], w3 = x.low;
  }
  words[0] = w0, words[1] = w1, words[2] = w2, words[3] = w3;
}

// open_uniform_from(word) without a conversion: the bits of a float in [1, 2), less 1 - 2^-24.
__device__ __forceinline__ float uniform_of(std::uint32_t word) {
  return __uint_as_float((word >> 9) | 0x3F800000u) - 0x1.fffffep-1f;
}

// The logistic noise log u - log(1 - u) opens a gate of logit g when u > exp(-g) (1 - u). Forward
// and backward take the same expression, so that they see the same gates.
__device__ __forceinline__ float closing_weight(float exp_minus_logit, float u) {
  return fmaf(-u, exp_minus_logit, exp_minus_logit);
}

// What the backward pass needs of one edge.
struct EdgeGradient {
  float open_weight;  // A e
  float score;        // dL/ds
  float logit;        // dL/dg, the part of it that passes through the gate
};

// `x` is q . k, `scale` and `bias` are in units of log 2, `minus_lse` is minus the row's
// log-sum-exp likewise; `slope` is dL/dz_i . v_j, `total` is dL/dz_i . z_i, `dexpected` the
// gradient of sum sigmoid(g). Without sampling u is 1/2: no noise.
template <FlashGate kGate>
__device__ __forceinline__ EdgeGradient edge_gradient(float x, float scale, float bias,
                                                      float minus_lse, float slope, float total,
                                                      float dexpected, std::uint32_t word) {
  const float weight = exp2_approx(fmaf(x, scale, minus_lse));
  if constexpr (kGate == FlashGate::kNone) return {weight, weight * (slope - total), 0.0f};
  // Bounded, so that its square below is finite: 2^60 is as closed as infinity.
  const float E = exp2_approx(fminf(fmaf(x, -scale, -bias), 60.0f));
  const float u = kGate == FlashGate::kSampled ? uniform_of(word) : 0.5f;
  const float w = closing_weight(E, u);
  const bool open = u > w;
  // r (1 - r) = u w / (u + w)^2 and sigmoid(g) (1 - sigmoid(g)) = E / (1 + E)^2, one reciprocal for
  // both.
  const float a = u + w, b = 1.0f + E;
  const float inverse = reciprocal_approx(a * b);
  const float over_a = b * inverse, over_b = a * inverse;
  const float gate_slope = u * over_a * (w * over_a);
  const float logit = fmaf(weight * gate_slope, slope, dexpected * (E * over_b * over_b));
  const float open_weight = open ? weight : 0.0f;
  return {open_weight, fmaf(open_weight, slope, fmaf(-weight, total, logit)), logit};
}

}  // namespace filigree::cuda::flash

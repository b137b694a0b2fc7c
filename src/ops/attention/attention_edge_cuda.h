// One edge of gated attention on the GPU in f32, forward and backward; formulas as in
// filigree/ops.h. For .cu files.
#pragma once

#include "ops/attention/attention_kernels.h"

namespace filigree::cuda {

// One edge's gate; see gate_body.inl for the formulas.
struct Gate {
  float expected, relaxed;
  bool open;
};

__device__ inline float edge_uniform(const GateArgs& gate, std::uint64_t key,
                                     const AttentionShape& s, std::int64_t b, std::int64_t h,
                                     std::int64_t i, std::int64_t j) {
  if (gate.uniform != nullptr) return gate.uniform[((b * s.H + h) * s.Tq + i) * s.Tk + j];
  return gate_uniform(key, gate.noise.layer,
                      static_cast<std::uint32_t>((gate.noise.first_batch + b) * s.H + h),
                      static_cast<std::uint32_t>(s.Tk - s.Tq + i), static_cast<std::uint32_t>(j));
}

__device__ inline Gate gate_of(float logit, bool sample, float u) {
  const float E = expf(-logit);
  Gate gate;
  gate.expected = 1.0f / (1.0f + E);
  if (sample) {
    const float closing = E * (1.0f - u);
    gate.relaxed = u / (u + closing);
    gate.open = u > closing;
  } else {
    gate.relaxed = gate.expected;
    gate.open = logit > 0.0f;
  }
  return gate;
}

// Of one edge: its weight and what the gradient of its score is made of. With w = A e (or A without
// a gate) and gv = dz . v:
struct EdgeGradient {
  float weight;  // w
  float dgate;   // A r (1 - r) gv + dexpected sigmoid'(g)
  float dscore;  // A (e gv - expected value) + dgate; not yet times the scale
};

__device__ inline EdgeGradient edge_gradient(float score, float lse, float gv, float expected_value,
                                             const GateArgs& gate, float bias, float dexpected,
                                             float u) {
  const float a = expf(score - lse);
  if (gate.bias == nullptr) return {a, 0.0f, a * (gv - expected_value)};
  const Gate g = gate_of(score + bias, gate.sample, u);
  const float open = g.open ? 1.0f : 0.0f;
  const float dgate =
      a * g.relaxed * (1.0f - g.relaxed) * gv + dexpected * g.expected * (1.0f - g.expected);
  return {a * open, dgate, a * (open * gv - expected_value) + dgate};
}

}  // namespace filigree::cuda

// Arguments of the attention kernels; layouts as in attention.h, log_sum_exp is [B, H, Tq].
#pragma once

#include <cstdint>

#include "ops/attention/gate_noise.h"

namespace filigree {

struct AttentionShape {
  std::int64_t B = 0, Tq = 0, Tk = 0, H = 0, G = 0, D = 0;
  std::int64_t kv_batch = 0;  // floats from one batch entry of k and v to the next
  float scale = 1.0f;
};

// The gate of each edge, as gated_attention.h defines it. Off when bias is null.
struct GateArgs {
  const float* bias = nullptr;  // [H]
  bool sample = false;
  GateNoise noise = {};
  const float* uniform = nullptr;  // [B, H, Tq, Tk]: in place of the counters' noise
  float* mask = nullptr;           // [B, H, Tq, Tk], written; or null
  float* expected_rows = nullptr;  // [B, H, Tq]: sum over keys of sigmoid(gate logit)
  float* active_rows = nullptr;    // [B, H, Tq]: open gates
};

struct AttentionArgs {
  AttentionShape shape;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* z = nullptr;
  float* log_sum_exp = nullptr;
  float* pattern = nullptr;  // or null; with a gate, the gated pattern
  GateArgs gate = {};
};

struct AttentionGradArgs {
  AttentionShape shape;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* log_sum_exp = nullptr;
  const float* dz = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  GateArgs gate = {};
  const float* dexpected = nullptr;  // [B, H]: gradient of sum of sigmoid(gate logit); with a gate
  float* dbias = nullptr;            // [B, H], written with a gate
};

namespace cpu {
void attention(const AttentionArgs& args);
void attention_grad(const AttentionGradArgs& args);
}  // namespace cpu
}  // namespace filigree

// Attention on tensor cores: bf16 in and out, f32 inside, gated or not. Launchers of the kernels in
// flash_forward.cu, flash_maps.cu and flash_backward_*.cu; the formulas are in filigree/ops.h.
//
// Blocks of scores live in registers only. Forward keeps the row log-sum-exp; backward computes
// scores and noise again, once for dq (a block of queries goes over its keys) and once for dk and
// dv (a block of keys goes over its queries), so that every sum has one owner and one order:
// the same inputs give the same bits. Memory grows with T.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "filigree/gate_noise.h"

namespace filigree::cuda {

// Elements from one token and from one batch entry to the next; heads are D apart.
struct TokenStrides {
  std::int64_t token = 0, batch = 0;
};

struct FlashShape {
  int B = 0, H = 0, G = 0, Tq = 0, Tk = 0;
  int D = 0;              // 16, 32, 64, 80, 96, 128 or 256
  float scale = 1.0f;     // positive
  int window = 0;         // keys that a query sees, its own the last; Tk where it sees all
  float soft_cap = 0.0f;  // 0: none
};

enum class FlashGate { kNone, kHard, kSampled };

struct FlashGateArgs {
  FlashGate kind = FlashGate::kNone;
  const float* bias = nullptr;  // [H]
  GateNoise noise = {};         // of kSampled
};

// Pointers to bf16 are void: headers of device types stay in the .cu files.
struct FlashForwardArgs {
  FlashShape shape;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* z = nullptr;
  void* z_error = nullptr;  // as z, or null: what rounding took from z, for the gradient
  TokenStrides q_strides, kv_strides, z_strides;
  float* log_sum_exp = nullptr;  // [B, H, Tq]
  FlashGateArgs gate;
  float* expected_rows = nullptr;  // [B, H, Tq], with a gate: sums of sigmoid(gate logit)
  float* active_rows = nullptr;    // [B, H, Tq], with a gate: open gates
};

// [B, H, Tq, Tk] of a forward pass that has been; zero where a query does not see a key.
struct FlashMapsArgs {
  FlashShape shape;
  const void* q = nullptr;
  const void* k = nullptr;
  TokenStrides q_strides, kv_strides;
  const float* log_sum_exp = nullptr;
  FlashGateArgs gate;
  float* pattern = nullptr;  // or null: weights, of open edges only
  float* mask = nullptr;     // or null: 1 for open edges
};

struct FlashBackwardArgs {
  FlashShape shape;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* z = nullptr;
  const void* z_error = nullptr;  // or null
  const void* dz = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  TokenStrides q_strides, kv_strides, z_strides;  // z_strides: of z, z_error and dz
  TokenStrides dq_strides, dkv_strides;
  const float* log_sum_exp = nullptr;
  FlashGateArgs gate;
  const float* dexpected = nullptr;  // [B, H], with a gate
  float* dbias = nullptr;            // [B, H], written with a gate
  float* scratch = nullptr;          // flash_backward_scratch() floats
};

// Whether the kernels take this shape, on the GPU in use: heads of 256 need the shared memory of
// Hopper.
bool flash_attention_takes(const FlashShape& shape);
std::int64_t flash_backward_scratch(const FlashShape& shape);

cudaError_t flash_forward(const FlashForwardArgs& args, cudaStream_t stream);
cudaError_t flash_maps(const FlashMapsArgs& args, cudaStream_t stream);
cudaError_t flash_backward(const FlashBackwardArgs& args, cudaStream_t stream);

}  // namespace filigree::cuda

// Chooses among the attention kernels of the GPU: those on tensor cores for bf16 and those by tiles
// for f32 where they apply, else those that go row by row.
#include <type_traits>

#include "filigree/device.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_plain_cuda.h"
#include "ops/attention/attention_tiled_cuda.h"
#include "ops/attention/flash_attention_cuda.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

FlashShape flash_shape(const AttentionShape& s) {
  const auto fits = [](std::int64_t value) { return value < (std::int64_t{1} << 30); };
  if (s.bidirectional) return {};  // these kernels skip what is behind a query
  if (!fits(s.B) || !fits(s.H) || !fits(s.Tq) || !fits(s.Tk) || !fits(s.D)) return {};
  return {static_cast<int>(s.B),
          static_cast<int>(s.H),
          static_cast<int>(s.G),
          static_cast<int>(s.Tq),
          static_cast<int>(s.Tk),
          static_cast<int>(s.D),
          s.scale,
          static_cast<int>(s.window > 0 && s.window < s.Tk ? s.window : s.Tk),
          s.soft_cap};
}

TokenStrides query_strides(const AttentionShape& s) { return {s.q_token, s.Tq * s.q_token}; }
TokenStrides key_strides(const AttentionShape& s) { return {s.kv_token, s.kv_batch}; }
TokenStrides result_strides(const AttentionShape& s) { return {s.H * s.D, s.Tq * s.H * s.D}; }

FlashGateArgs flash_gate(const GateArgs& gate) {
  if (gate.bias == nullptr) return {};
  return {gate.sample ? FlashGate::kSampled : FlashGate::kHard, gate.bias, gate.noise};
}

// Copies of 16 bytes need that alignment, which views into a tensor may lack.
template <typename... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace

template <typename T>
bool reads_packed(const AttentionShape& s) {
  return std::is_same_v<T, Bf16> && flash_attention_takes(flash_shape(s)) && s.kv_batch % 8 == 0;
}

template <typename T>
void attention(const AttentionArgs<T>& args) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const AttentionShape& s = args.shape;
    const FlashShape shape = flash_shape(s);
    if (args.gate.uniform == nullptr && flash_attention_takes(shape) &&
        aligned(args.q, args.k, args.v, args.z, args.z_error) && s.kv_batch % 8 == 0) {
      check(flash_forward({shape, args.q, args.k, args.v, args.z, args.z_error, query_strides(s),
                           key_strides(s), result_strides(s), args.log_sum_exp,
                           flash_gate(args.gate), args.gate.expected_rows, args.gate.active_rows},
                          stream()),
            "start the attention kernel");
      if (args.pattern != nullptr || args.gate.mask != nullptr)
        check(flash_maps({shape, args.q, args.k, query_strides(s), key_strides(s), args.log_sum_exp,
                          flash_gate(args.gate), args.pattern, args.gate.mask},
                         stream()),
              "start the kernel of attention maps");
      return;
    }
  }
  const AttentionShape& s = args.shape;
  require(s.q_token == s.H * s.D, "attention: these kernels do not read q, k and v side by side");
  if (args.z_error != nullptr) {  // these kernels' gradient does not use it, but that of others may
    const auto bytes = static_cast<std::size_t>(s.B * s.Tq * s.H * s.D) * sizeof(T);
    check(cudaMemsetAsync(args.z_error, 0, bytes, stream()), "clear attention's rounding errors");
  }
  if constexpr (std::is_same_v<T, float>) {
    if (tiled::takes(s) && aligned(args.q, args.k, args.v) && s.kv_batch % 4 == 0)
      return tiled::attention(args);
  }
  plain::attention(args);
}

template <typename T>
void attention_grad(const AttentionGradArgs<T>& args) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const AttentionShape& s = args.shape;
    const FlashShape shape = flash_shape(s);
    if (args.z != nullptr && args.gate.uniform == nullptr && flash_attention_takes(shape) &&
        aligned(args.q, args.k, args.v, args.z, args.z_error, args.dz, args.dq, args.dk, args.dv) &&
        s.kv_batch % 8 == 0) {
      const Workspace scratch(static_cast<std::size_t>(flash_backward_scratch(shape)) *
                              sizeof(float));
      // dk and dv are whole tensors, also where k and v are the filled part of a cache.
      const TokenStrides queries = query_strides(s), keys = key_strides(s),
                         results = result_strides(s), out = {s.kv_token, s.Tk * s.kv_token};
      const FlashBackwardArgs backward = {.shape = shape,
                                          .q = args.q,
                                          .k = args.k,
                                          .v = args.v,
                                          .z = args.z,
                                          .z_error = args.z_error,
                                          .dz = args.dz,
                                          .dq = args.dq,
                                          .dk = args.dk,
                                          .dv = args.dv,
                                          .q_strides = queries,
                                          .kv_strides = keys,
                                          .z_strides = results,
                                          .dq_strides = queries,
                                          .dkv_strides = out,
                                          .log_sum_exp = args.log_sum_exp,
                                          .gate = flash_gate(args.gate),
                                          .dexpected = args.dexpected,
                                          .dbias = args.dbias,
                                          .scratch = scratch.as<float>()};
      check(flash_backward(backward, stream()), "start the kernels of attention's gradient");
      return;
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (args.z != nullptr && tiled::takes(args.shape) &&
        aligned(args.q, args.k, args.v, args.z, args.dz) && args.shape.kv_batch % 4 == 0)
      return tiled::attention_grad(args);
  }
  plain::attention_grad(args);
}

template bool reads_packed<float>(const AttentionShape&);
template bool reads_packed<Bf16>(const AttentionShape&);
template void attention(const AttentionArgs<float>&);
template void attention(const AttentionArgs<Bf16>&);
template void attention_grad(const AttentionGradArgs<float>&);
template void attention_grad(const AttentionGradArgs<Bf16>&);

}  // namespace filigree::cuda

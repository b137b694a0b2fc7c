#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "filigree/runtime.h"
#include "ops/attention/attention_kernels.h"
#include "runtime/cpu/scratch.h"

namespace filigree {
namespace {

constexpr std::int64_t kQueryBlock = 64;
// Below this many queries packing the keys costs more than it saves.
constexpr std::int64_t kFewQueries = 8;

float* scratch(std::size_t floats) { return scratch_floats(ScratchSlot::kJob, floats); }

}  // namespace
}  // namespace filigree

#define FILIGREE_SIMD_BODY "ops/attention/attention_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void attention(const AttentionArgs<>& args) {
  const AttentionShape& s = args.shape;
  if (s.Tq < kFewQueries) {
    parallel_for(s.B * s.H, 1, [&](std::int64_t job, std::int64_t) {
      // One row of scores and one of noise, each with room for a whole block of 64 keys.
      const std::int64_t row = s.Tk + 128;
      float* scores = scratch(static_cast<std::size_t>(2 * row));
      FILIGREE_SIMD_CALL(attend_directly, args, job / s.H, job % s.H, scores, scores + row);
    });
    return;
  }
  // Heads are split further only when there are too few of them for the threads.
  const std::int64_t wanted = 4L * num_threads();
  const std::int64_t blocks = (s.Tq + kQueryBlock - 1) / kQueryBlock;
  const std::int64_t splits = std::clamp<std::int64_t>(wanted / (s.B * s.H), 1, blocks);
  const std::int64_t span = (blocks + splits - 1) / splits * kQueryBlock;
  parallel_for(s.B * s.H * splits, 1, [&](std::int64_t job, std::int64_t) {
    const std::int64_t head = job / splits, begin = job % splits * span;
    const std::int64_t end = std::min(begin + span, s.Tq);
    if (begin < end) FILIGREE_SIMD_CALL(attend, args, head / s.H, head % s.H, begin, end);
  });
}

void attention_grad(const AttentionGradArgs<>& args) {
  const AttentionShape& s = args.shape;
  parallel_for(s.B * s.G, 1, [&](std::int64_t job, std::int64_t) {
    FILIGREE_SIMD_CALL(attend_grad, args, job / s.G, job % s.G);
  });
}

void mask_scores(const AttentionShape& s, float* scores) {
  const std::int64_t past = s.Tk - s.Tq;
  parallel_for(s.B * s.H * s.Tq, 64, [&](std::int64_t row_begin, std::int64_t row_end) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const std::int64_t position = past + row % s.Tq;
      const std::int64_t first = first_key(s, position), end = end_key(s, position);
      float* x = scores + row * s.Tk;
      for (std::int64_t j = 0; j < s.Tk; ++j)
        x[j] = j >= first && j < end ? x[j] * s.scale : -std::numeric_limits<float>::infinity();
      if (s.soft_cap > 0.0f)
        for (std::int64_t j = first; j < end; ++j) x[j] = s.soft_cap * std::tanh(x[j] / s.soft_cap);
    }
  });
}

void mask_score_gradient(const AttentionShape& s, const float* scores, const float* grad,
                         float* out) {
  const std::int64_t past = s.Tk - s.Tq;
  parallel_for(s.B * s.H * s.Tq, 64, [&](std::int64_t row_begin, std::int64_t row_end) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const std::int64_t position = past + row % s.Tq;
      const std::int64_t first = first_key(s, position), end = end_key(s, position);
      const std::int64_t at = row * s.Tk;
      for (std::int64_t j = 0; j < s.Tk; ++j)
        out[at + j] = j >= first && j < end ? grad[at + j] * s.scale : 0.0f;
      if (s.soft_cap > 0.0f)
        for (std::int64_t j = first; j < end; ++j) {
          const float share = scores[at + j] / s.soft_cap;
          out[at + j] *= 1.0f - share * share;
        }
    }
  });
}

void gate_mask(const GateMaskArgs<>& args) {
  const GateArgs& gate = args.gate;
  const std::uint64_t key = gate_noise_key(gate.noise);
  parallel_for(args.B * args.H * args.Tq, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t j = 0; j < args.Tk; ++j) {
        const std::int64_t at = row * args.Tk + j;
        const float g = args.scores[at] + gate.bias[row / args.Tq % args.H];
        const float E = std::exp(-g);
        float u = 0.5f;
        if (gate.sample)
          u = gate.uniform != nullptr
                  ? gate.uniform[at]
                  : gate_uniform(
                        key, gate.noise.layer,
                        static_cast<std::uint32_t>(gate.noise.first_batch * args.H + row / args.Tq),
                        static_cast<std::uint32_t>(args.Tk - args.Tq + row % args.Tq),
                        static_cast<std::uint32_t>(j));
        args.mask[at] = (gate.sample ? u > E * (1.0f - u) : g > 0.0f) ? 1.0f : 0.0f;
        if (args.slopes != nullptr) {
          const float r = u / (u + E * (1.0f - u));
          args.slopes[at] = r * (1.0f - r);
        }
      }
  });
}

}  // namespace filigree::cpu

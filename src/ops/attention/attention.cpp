#include "ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/attention/attention_shape.h"
#include "ops/matmul/gemm.h"
#include "runtime/threads.h"

namespace filigree {
namespace {

// The matrix of one head within [B, T, heads, D].
struct HeadMatrix {
  const float* data;
  std::int64_t stride;
};

HeadMatrix head_of(const Tensor& x, std::int64_t b, std::int64_t h) {
  const std::int64_t T = x.size(1), heads = x.size(2), D = x.size(3);
  return {x.f32() + (b * T * heads + h) * D, heads * D};
}

// C[M, N] (+)= A B with explicit strides.
void product(std::int64_t M, std::int64_t N, std::int64_t K, const float* A, std::int64_t a_row,
             std::int64_t a_col, const float* B, std::int64_t b_row, std::int64_t b_col, float* C,
             std::int64_t c_row, bool accumulate) {
  GemmArgs args;
  args.M = M, args.N = N, args.K = K;
  args.A = A, args.a_row = a_row, args.a_col = a_col;
  args.B = B, args.b_row = b_row, args.b_col = b_col;
  args.C = C, args.c_row = c_row, args.accumulate = accumulate;
  cpu::gemm(args);
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v,
                   AttentionOptions options) {
  const AttentionShape s =
      attention_shape("attention", q.shape(), k.shape(), options.keys, options.scale);
  require(k.shape() == v.shape(), "attention: keys {} and values {} differ in shape",
          k.shape().to_string(), v.shape().to_string());
  Tensor z = Tensor::empty(q.shape());
  Tensor lse = Tensor::empty({s.B, s.H, s.Tq});
  Tensor pattern = options.pattern != nullptr ? Tensor::empty({s.B, s.H, s.Tq, s.Tk}) : Tensor();
  AttentionArgs args{
      s, q.value().f32(), k.value().f32(), v.value().f32(), z.mutable_f32(), lse.mutable_f32()};
  if (pattern.defined()) args.pattern = pattern.mutable_f32();
  cpu::attention(args);
  if (options.pattern != nullptr) *options.pattern = pattern;
  if (options.log_sum_exp != nullptr) *options.log_sum_exp = lse;

  return make_result(std::move(z), {&q, &k, &v}, [q, k, v, s, lse](const Tensor& grad) {
    require(s.Tk == k.size(1), "attention: a partly filled cache has no gradient");
    Tensor dq = Tensor::empty(q.shape()), dk = Tensor::empty(k.shape()),
           dv = Tensor::empty(v.shape());
    cpu::attention_grad({s, q.value().f32(), k.value().f32(), v.value().f32(), lse.f32(),
                         grad.f32(), dq.mutable_f32(), dk.mutable_f32(), dv.mutable_f32()});
    if (q.requires_grad()) q.accumulate_grad(std::move(dq));
    if (k.requires_grad()) k.accumulate_grad(std::move(dk));
    if (v.requires_grad()) v.accumulate_grad(std::move(dv));
  });
}

Variable attention_scores(const Variable& q, const Variable& k, float scale) {
  const AttentionShape s = attention_shape("attention_scores", q.shape(), k.shape(), -1, scale);
  Tensor scores = Tensor::empty({s.B, s.H, s.Tq, s.Tk});
  const std::int64_t past = s.Tk - s.Tq;
  float* out = scores.mutable_f32();
  parallel_for(s.B * s.H, 1, [&](std::int64_t job, std::int64_t) {
    const HeadMatrix Q = head_of(q.value(), job / s.H, job % s.H);
    const HeadMatrix K = head_of(k.value(), job / s.H, job % s.H / (s.H / s.G));
    float* S = out + job * s.Tq * s.Tk;
    product(s.Tq, s.Tk, s.D, Q.data, Q.stride, 1, K.data, 1, K.stride, S, s.Tk, false);
    for (std::int64_t i = 0; i < s.Tq; ++i)
      for (std::int64_t j = 0; j < s.Tk; ++j)
        S[i * s.Tk + j] =
            j <= past + i ? S[i * s.Tk + j] * s.scale : -std::numeric_limits<float>::infinity();
  });
  return make_result(std::move(scores), {&q, &k}, [q, k, s, past](const Tensor& grad) {
    // Scaled gradient with nothing above the diagonal.
    Tensor scaled = Tensor::empty(grad.shape());
    Tensor dq = Tensor::empty(q.shape()), dk = Tensor::zeros(k.shape());
    const float* g = grad.f32();
    float* gs = scaled.mutable_f32();
    float* dq_data = dq.mutable_f32();
    float* dk_data = dk.mutable_f32();
    parallel_for(s.B * s.G, 1, [&](std::int64_t job, std::int64_t) {
      const std::int64_t b = job / s.G, group = s.H / s.G;
      for (std::int64_t h = job % s.G * group; h < (job % s.G + 1) * group; ++h) {
        const std::int64_t at = (b * s.H + h) * s.Tq * s.Tk;
        for (std::int64_t i = 0; i < s.Tq; ++i)
          for (std::int64_t j = 0; j < s.Tk; ++j)
            gs[at + i * s.Tk + j] = j <= past + i ? g[at + i * s.Tk + j] * s.scale : 0.0f;
        const HeadMatrix Q = head_of(q.value(), b, h);
        const HeadMatrix K = head_of(k.value(), b, job % s.G);
        product(s.Tq, s.D, s.Tk, gs + at, s.Tk, 1, K.data, K.stride, 1,
                dq_data + (Q.data - q.value().f32()), Q.stride, false);
        product(s.Tk, s.D, s.Tq, gs + at, 1, s.Tk, Q.data, Q.stride, 1,
                dk_data + (K.data - k.value().f32()), K.stride, true);
      }
    });
    if (q.requires_grad()) q.accumulate_grad(std::move(dq));
    if (k.requires_grad()) k.accumulate_grad(std::move(dk));
  });
}

Variable attention_mix(const Variable& pattern, const Variable& v) {
  const Shape& p = pattern.shape();
  const Shape& sv = v.shape();
  require(p.rank() == 4 && sv.rank() == 4 && p[0] == sv[0] && p[3] == sv[1] && sv[2] > 0 &&
              p[1] % sv[2] == 0,
          "attention_mix: pattern {} and values {} do not fit: [B, H, Tq, Tk] and [B, Tk, G, D]",
          p.to_string(), sv.to_string());
  const std::int64_t B = p[0], H = p[1], Tq = p[2], Tk = p[3], G = sv[2], D = sv[3];
  Tensor z = Tensor::empty({B, Tq, H, D});
  float* out = z.mutable_f32();
  parallel_for(B * H, 1, [&](std::int64_t job, std::int64_t) {
    const std::int64_t b = job / H, h = job % H;
    const HeadMatrix V = head_of(v.value(), b, h / (H / G));
    product(Tq, D, Tk, pattern.value().f32() + job * Tq * Tk, Tk, 1, V.data, V.stride, 1,
            out + (b * Tq * H + h) * D, H * D, false);
  });
  return make_result(std::move(z), {&pattern, &v}, [=](const Tensor& grad) {
    Tensor dp = Tensor::empty(pattern.shape()), dv = Tensor::zeros(v.shape());
    float* dp_data = dp.mutable_f32();
    float* dv_data = dv.mutable_f32();
    parallel_for(B * G, 1, [&](std::int64_t job, std::int64_t) {
      const std::int64_t b = job / G, g = job % G;
      for (std::int64_t h = g * (H / G); h < (g + 1) * (H / G); ++h) {
        const std::int64_t at = (b * H + h) * Tq * Tk;
        const HeadMatrix V = head_of(v.value(), b, g);
        const HeadMatrix dZ = head_of(grad, b, h);
        product(Tq, Tk, D, dZ.data, dZ.stride, 1, V.data, 1, V.stride, dp_data + at, Tk, false);
        product(Tk, D, Tq, pattern.value().f32() + at, 1, Tk, dZ.data, dZ.stride, 1,
                dv_data + (V.data - v.value().f32()), V.stride, true);
      }
    });
    if (pattern.requires_grad()) pattern.accumulate_grad(std::move(dp));
    if (v.requires_grad()) v.accumulate_grad(std::move(dv));
  });
}

}  // namespace filigree

#include <array>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "ops/attention/attention_operands.h"
#include "ops/matmul/gemm.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

// One head's [T, D] within [B, T, heads, D].
struct HeadPlace {
  std::int64_t offset, stride;
};

HeadPlace head_of(const Tensor& x, std::int64_t b, std::int64_t h) {
  const std::int64_t T = x.size(1), heads = x.size(2), D = x.size(3);
  return {(b * T * heads + h) * D, heads * D};
}

// The [M, N] matrix at `data` with its strides, for a product.
template <typename Pointer>
struct Matrix {
  Pointer data;
  std::int64_t row, col;
};

template <typename T>
GemmArgs<T> product(std::int64_t M, std::int64_t N, std::int64_t K, const Matrix<const T*>& A,
                    const Matrix<const T*>& B, T* C, std::int64_t c_row, bool accumulate) {
  GemmArgs<T> args;
  args.M = M, args.N = N, args.K = K;
  args.A = A.data, args.a_row = A.row, args.a_col = A.col;
  args.B = B.data, args.b_row = B.row, args.b_col = B.col;
  args.C = C, args.c_row = c_row, args.accumulate = accumulate;
  return args;
}

// Runs one(type, b, h) -> products for every head. On the CPU threads share the key heads, so that
// what query heads of one group add to comes from one thread; on the GPU the key heads of an entry
// are one batch of products, `steps` elements apart.
template <typename Products>
void for_heads(const Tensor& like, std::int64_t B, std::int64_t H, std::int64_t G,
               const std::vector<cuda::GemmBatch>& steps, const Products& products) {
  const std::int64_t group = H / G;
  const auto on_cpu = [&] {
    parallel_for(B * G, 1, [&](std::int64_t job, std::int64_t) {
      for (std::int64_t h = job % G * group; h < (job % G + 1) * group; ++h)
        for (const GemmArgs<>& args : products(float(), job / G, h)) cpu::gemm(args);
    });
  };
  dispatch("attention", like, on_cpu, [&](auto type) {
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t h = 0; h < group; ++h) {
        const auto all = products(type, b, h);
        for (std::size_t i = 0; i < all.size(); ++i) cuda::gemm(all[i], steps[i]);
      }
  });
}

}  // namespace

namespace {

Variable attend(const AttentionOperands& in, const AttentionOptions& options) {
  const AttentionShape& s = in.shape();
  Tensor z = in.like().like(in.result_shape());
  Tensor z_error = in.room_for_error(z);
  Tensor lse = z.like({s.B, s.H, s.Tq}, DType::kF32);
  Tensor pattern = options.pattern != nullptr ? lse.like({s.B, s.H, s.Tq, s.Tk}) : Tensor();
  const auto args = [&](auto type) {
    using T = decltype(type);
    AttentionArgs<T> forward;
    in.fill<T>(forward);
    forward.z = z.mutable_data<T>();
    if (z_error.defined()) forward.z_error = z_error.mutable_data<T>();
    forward.log_sum_exp = lse.mutable_data<float>();
    if (pattern.defined()) forward.pattern = pattern.mutable_data<float>();
    return forward;
  };
  dispatch(
      "attention", z, [&] { cpu::attention(args(float())); },
      [&](auto type) { cuda::attention(args(type)); });
  if (options.pattern != nullptr) *options.pattern = pattern;
  if (options.log_sum_exp != nullptr) *options.log_sum_exp = lse;

  // Kernels of the GPU use z; on the CPU it need not be kept.
  const Tensor kept = z.on_gpu() ? z : Tensor();
  return make_result(
      std::move(z), {&in.q(), &in.k(), &in.v()}, [in, lse, kept, z_error](const Tensor& grad) {
        in.add_gradients("attention", grad, [&]<typename T>(AttentionGradArgs<T>& back) {
          back.log_sum_exp = lse.data<float>();
          if (kept.defined()) back.z = kept.data<T>();
          if (z_error.defined()) back.z_error = z_error.data<T>();
        });
      });
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v,
                   AttentionOptions options) {
  return attend({"attention", q, k, v, options.keys, options.scale, options.mask}, options);
}

Variable attention(const PackedHeads& heads, float scale) {
  return attend({"attention", heads.packed, heads.heads, heads.key_heads, scale}, {});
}

bool attention_reads_packed(const Tensor& like, const Shape& packed, std::int64_t heads,
                            std::int64_t key_heads) {
  if constexpr (kHasCuda) {
    if (like.on_gpu() && like.dtype() == DType::kBf16)
      return cuda::reads_packed<Bf16>(packed_shape("attention", packed, heads, key_heads, 0.0f));
  }
  return false;
}

Variable attention_scores(const Variable& q, const Variable& k, float scale,
                          const ScoreMask& mask) {
  const AttentionShape s =
      attention_shape("attention_scores", q.shape(), k.shape(), -1, scale, mask);
  require_alike("attention_scores", {&q.value(), &k.value()});
  Tensor scores = q.value().like({s.B, s.H, s.Tq, s.Tk});
  const std::int64_t group = s.H / s.G, edges = s.Tq * s.Tk;
  for_heads(scores, s.B, s.H, s.G, {{s.G, group * s.D, s.D, group * edges}},
            [&](auto type, std::int64_t b, std::int64_t h) {
              using T = decltype(type);
              const HeadPlace Q = head_of(q.value(), b, h), K = head_of(k.value(), b, h / group);
              return std::array{
                  product<T>(s.Tq, s.Tk, s.D, {q.value().data<T>() + Q.offset, Q.stride, 1},
                             {k.value().data<T>() + K.offset, 1, K.stride},
                             scores.mutable_data<T>() + (b * s.H + h) * edges, s.Tk, false)};
            });
  dispatch(
      "attention_scores", scores, [&] { cpu::mask_scores(s, scores.mutable_f32()); },
      [&](auto type) { cuda::mask_scores(s, scores.mutable_data<decltype(type)>()); });
  const Tensor capped = s.soft_cap > 0.0f ? scores : Tensor();
  const auto backward = [q, k, s, group, edges, capped](const Tensor& grad) {
    Tensor scaled = grad.like(grad.shape());
    dispatch(
        "attention_scores", grad,
        [&] {
          cpu::mask_score_gradient(s, capped.defined() ? capped.f32() : nullptr, grad.f32(),
                                   scaled.mutable_f32());
        },
        [&](auto type) {
          using T = decltype(type);
          cuda::mask_score_gradient(s, capped.defined() ? capped.data<T>() : nullptr,
                                    grad.data<T>(), scaled.mutable_data<T>());
        });
    Tensor dq = grad.like(q.shape());
    Tensor dk = Tensor::zeros(k.shape(), grad.dtype(), grad.device());
    for_heads(grad, s.B, s.H, s.G,
              {{s.G, group * edges, s.D, group * s.D}, {s.G, group * edges, group * s.D, s.D}},
              [&](auto type, std::int64_t b, std::int64_t h) {
                using T = decltype(type);
                const HeadPlace Q = head_of(q.value(), b, h), K = head_of(k.value(), b, h / group);
                const T* gradient = scaled.data<T>() + (b * s.H + h) * edges;
                return std::array{product<T>(s.Tq, s.D, s.Tk, {gradient, s.Tk, 1},
                                             {k.value().data<T>() + K.offset, K.stride, 1},
                                             dq.mutable_data<T>() + Q.offset, Q.stride, false),
                                  product<T>(s.Tk, s.D, s.Tq, {gradient, 1, s.Tk},
                                             {q.value().data<T>() + Q.offset, Q.stride, 1},
                                             dk.mutable_data<T>() + K.offset, K.stride, true)};
              });
    if (q.requires_grad()) q.accumulate_grad(std::move(dq));
    if (k.requires_grad()) k.accumulate_grad(std::move(dk));
  };
  return make_result(std::move(scores), {&q, &k}, backward);
}

Variable attention_mix(const Variable& pattern, const Variable& v) {
  const Shape& p = pattern.shape();
  const Shape& sv = v.shape();
  require(p.rank() == 4 && sv.rank() == 4 && p[0] == sv[0] && p[3] == sv[1] && sv[2] > 0 &&
              p[1] % sv[2] == 0,
          "attention_mix: pattern {} and values {} do not fit: [B, H, Tq, Tk] and [B, Tk, G, D]",
          p.to_string(), sv.to_string());
  require_alike("attention_mix", {&pattern.value(), &v.value()});
  const std::int64_t B = p[0], H = p[1], Tq = p[2], Tk = p[3], G = sv[2], D = sv[3];
  const std::int64_t group = H / G, edges = Tq * Tk;
  Tensor z = pattern.value().like({B, Tq, H, D});
  for_heads(z, B, H, G, {{G, group * edges, D, group * D}},
            [&](auto type, std::int64_t b, std::int64_t h) {
              using T = decltype(type);
              const HeadPlace V = head_of(v.value(), b, h / group), Z = head_of(z, b, h);
              return std::array{product<T>(Tq, D, Tk,
                                           {pattern.value().data<T>() + (b * H + h) * edges, Tk, 1},
                                           {v.value().data<T>() + V.offset, V.stride, 1},
                                           z.mutable_data<T>() + Z.offset, Z.stride, false)};
            });
  return make_result(std::move(z), {&pattern, &v}, [=](const Tensor& grad) {
    Tensor dp = grad.like(pattern.shape());
    Tensor dv = Tensor::zeros(v.shape(), grad.dtype(), grad.device());
    for_heads(grad, B, H, G, {{G, group * D, D, group * edges}, {G, group * edges, group * D, D}},
              [&](auto type, std::int64_t b, std::int64_t h) {
                using T = decltype(type);
                const std::int64_t at = (b * H + h) * edges;
                const HeadPlace V = head_of(v.value(), b, h / group), dZ = head_of(grad, b, h);
                const T* dz = grad.data<T>() + dZ.offset;
                return std::array{product<T>(Tq, Tk, D, {dz, dZ.stride, 1},
                                             {v.value().data<T>() + V.offset, 1, V.stride},
                                             dp.mutable_data<T>() + at, Tk, false),
                                  product<T>(Tk, D, Tq, {pattern.value().data<T>() + at, 1, Tk},
                                             {dz, dZ.stride, 1}, dv.mutable_data<T>() + V.offset,
                                             V.stride, true)};
              });
    if (pattern.requires_grad()) pattern.accumulate_grad(std::move(dp));
    if (v.requires_grad()) v.accumulate_grad(std::move(dv));
  });
}

}  // namespace filigree

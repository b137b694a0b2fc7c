#include "ops/attention/gated_attention.h"

#include <cmath>
#include <memory>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/attention/attention_shape.h"
#include "runtime/threads.h"

namespace filigree {
namespace {

// The bias of every head, from one shared number or one a head.
Tensor bias_by_head(const char* op, const Variable& bias, std::int64_t H) {
  require(bias.defined() && (bias.shape() == Shape{H} || bias.shape() == Shape{1}),
          "{}: the gate bias must be [1] or [{}], it is {}", op, H,
          bias.defined() ? bias.shape().to_string() : "undefined");
  if (bias.size(0) == H) return bias.value();
  return Tensor::full({H}, bias.value().item());
}

void check_uniform(const char* op, const Tensor& uniform, const Shape& wanted) {
  require(!uniform.defined() || uniform.shape() == wanted,
          "{}: the given noise is {}, the edges are {}", op,
          uniform.defined() ? uniform.shape().to_string() : "", wanted.to_string());
}

// Sums of rows [B H, Tq] in a fixed order, each times `factor`.
Tensor row_sums(const Tensor& rows, const Shape& shape, double factor) {
  Tensor sums = Tensor::empty(shape);
  const std::int64_t width = rows.elements() / std::max<std::int64_t>(shape.elements(), 1);
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    double total = 0.0;
    for (std::int64_t t = 0; t < width; ++t)
      total += static_cast<double>(rows.f32()[i * width + t]);
    sums.mutable_f32()[i] = static_cast<float>(total * factor);
  }
  return sums;
}

// Adds dbias [B, H] to the gradient of a bias of [H] or [1].
void add_bias_grad(const Variable& bias, const Tensor& dbias) {
  Tensor sums = Tensor::zeros(bias.shape());
  const std::int64_t H = dbias.size(1);
  for (std::int64_t i = 0; i < dbias.elements(); ++i)
    sums.mutable_f32()[bias.size(0) == 1 ? 0 : i % H] += dbias.f32()[i];
  bias.accumulate_grad(std::move(sums));
}

}  // namespace

GatedAttention gated_attention(const Variable& q, const Variable& k, const Variable& v,
                               const GatedAttentionOptions& options) {
  const AttentionShape s =
      attention_shape("gated_attention", q.shape(), k.shape(), options.keys, options.scale);
  require(k.shape() == v.shape(), "gated_attention: keys {} and values {} differ in shape",
          k.shape().to_string(), v.shape().to_string());
  const GateOptions& gate = options.gate;
  const Tensor bias = bias_by_head("gated_attention", gate.bias, s.H);
  const Shape edges{s.B, s.H, s.Tq, s.Tk};
  check_uniform("gated_attention", gate.uniform, edges);

  Tensor z = Tensor::empty(q.shape()), lse = Tensor::empty({s.B, s.H, s.Tq});
  Tensor expected_rows = Tensor::empty({s.B, s.H, s.Tq}),
         active_rows = Tensor::empty({s.B, s.H, s.Tq});
  Tensor pattern = options.pattern != nullptr ? Tensor::empty(edges) : Tensor();
  Tensor mask = options.mask != nullptr ? Tensor::empty(edges) : Tensor();
  AttentionArgs args{
      s, q.value().f32(), k.value().f32(), v.value().f32(), z.mutable_f32(), lse.mutable_f32()};
  args.pattern = pattern.defined() ? pattern.mutable_f32() : nullptr;
  args.gate = {bias.f32(),
               gate.sample,
               gate.noise,
               gate.uniform.defined() ? gate.uniform.f32() : nullptr,
               mask.defined() ? mask.mutable_f32() : nullptr,
               expected_rows.mutable_f32(),
               active_rows.mutable_f32()};
  cpu::attention(args);
  if (options.pattern != nullptr) *options.pattern = pattern;
  if (options.mask != nullptr) *options.mask = mask;

  const double pairs = static_cast<double>(s.Tq) * static_cast<double>(s.Tk - s.Tq) +
                       static_cast<double>(s.Tq) * static_cast<double>(s.Tq + 1) / 2.0;
  GatedAttention result;
  result.active = row_sums(active_rows, {s.B, s.H}, 1.0 / pairs);
  Tensor expected = row_sums(expected_rows, {s.B, s.H}, 1.0 / pairs);

  // Both results share one backward pass. The tape runs the closure of `expected` first, because it
  // is recorded last; it leaves its gradient here for the closure of z.
  const auto dexpected = std::make_shared<Tensor>(Tensor::zeros({s.B, s.H}));
  result.z = make_result(
      std::move(z), {&q, &k, &v, &gate.bias},
      [q, k, v, s, lse, bias, gate, dexpected](const Tensor& grad) {
        require(s.Tk == k.size(1), "gated_attention: a partly filled cache has no gradient");
        Tensor dq = Tensor::empty(q.shape()), dk = Tensor::empty(k.shape()),
               dv = Tensor::empty(v.shape()), dbias = Tensor::empty({s.B, s.H});
        AttentionGradArgs back{
            s,          q.value().f32(),  k.value().f32(),  v.value().f32(), lse.f32(),
            grad.f32(), dq.mutable_f32(), dk.mutable_f32(), dv.mutable_f32()};
        back.gate = {bias.f32(), gate.sample, gate.noise,
                     gate.uniform.defined() ? gate.uniform.f32() : nullptr};
        back.dexpected = dexpected->f32();
        back.dbias = dbias.mutable_f32();
        cpu::attention_grad(back);
        if (q.requires_grad()) q.accumulate_grad(std::move(dq));
        if (k.requires_grad()) k.accumulate_grad(std::move(dk));
        if (v.requires_grad()) v.accumulate_grad(std::move(dv));
        if (gate.bias.requires_grad()) add_bias_grad(gate.bias, dbias);
      });
  result.expected = make_result(std::move(expected), {&q, &k, &v, &gate.bias},
                                [z = result.z, dexpected, pairs](const Tensor& grad) {
                                  for (std::int64_t i = 0; i < grad.elements(); ++i)
                                    dexpected->mutable_f32()[i] = static_cast<float>(
                                        static_cast<double>(grad.f32()[i]) / pairs);
                                  // Without a gradient of its own, z's closure would not run and
                                  // this one would be lost.
                                  if (!z.grad().defined())
                                    z.accumulate_grad(Tensor::zeros(z.shape()));
                                });
  return result;
}

Variable gate_mask(const Variable& scores, const GateOptions& gate) {
  const Shape& edges = scores.shape();
  require(edges.rank() == 4, "gate_mask: the scores {} are not [B, H, Tq, Tk]", edges.to_string());
  const std::int64_t H = edges[1], Tq = edges[2], Tk = edges[3];
  const Tensor bias = bias_by_head("gate_mask", gate.bias, H);
  check_uniform("gate_mask", gate.uniform, edges);
  Tensor mask = Tensor::empty(edges);
  // r (1 - r), the slope that the gradient uses.
  Tensor slope = needs_grad({&scores, &gate.bias}) ? Tensor::empty(edges) : Tensor();
  float* open = mask.mutable_f32();
  float* slopes = slope.defined() ? slope.mutable_f32() : nullptr;
  const std::uint64_t key = gate_noise_key(gate.noise);
  parallel_for(edges[0] * H * Tq, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t j = 0; j < Tk; ++j) {
        const std::int64_t at = row * Tk + j;
        const float g = scores.value().f32()[at] + bias.f32()[row / Tq % H];
        const float E = std::exp(-g);
        float u = 0.5f;
        if (gate.sample)
          u = gate.uniform.defined()
                  ? gate.uniform.f32()[at]
                  : gate_uniform(key, gate.noise.layer,
                                 static_cast<std::uint32_t>(gate.noise.first_batch * H + row / Tq),
                                 static_cast<std::uint32_t>(Tk - Tq + row % Tq),
                                 static_cast<std::uint32_t>(j));
        open[at] = (gate.sample ? u > E * (1.0f - u) : g > 0.0f) ? 1.0f : 0.0f;
        if (slopes != nullptr) {
          const float r = u / (u + E * (1.0f - u));
          slopes[at] = r * (1.0f - r);
        }
      }
  });
  return make_result(std::move(mask), {&scores, &gate.bias},
                     [scores, slope, bias_variable = gate.bias, H, Tq, Tk](const Tensor& grad) {
                       Tensor dscores = Tensor::empty(scores.shape());
                       Tensor dbias = Tensor::zeros({scores.size(0), H});
                       for (std::int64_t i = 0; i < grad.elements(); ++i) {
                         const float d = grad.f32()[i] * slope.f32()[i];
                         dscores.mutable_f32()[i] = d;
                         dbias.mutable_f32()[i / (Tq * Tk)] += d;
                       }
                       if (scores.requires_grad()) scores.accumulate_grad(std::move(dscores));
                       if (bias_variable.requires_grad()) add_bias_grad(bias_variable, dbias);
                     });
}

}  // namespace filigree

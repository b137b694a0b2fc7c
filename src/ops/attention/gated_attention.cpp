#include <memory>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/attention/attention_operands.h"
#include "ops/layout/copy_blocks.h"
#include "ops/reduce/reduce_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

// The bias of every head, from one shared number or one a head.
Tensor bias_by_head(const char* op, const Variable& bias, std::int64_t H) {
  require(bias.defined() && (bias.shape() == Shape{H} || bias.shape() == Shape{1}),
          "{}: the gate bias must be [1] or [{}], it is {}", op, H,
          bias.defined() ? bias.shape().to_string() : "undefined");
  if (bias.size(0) == H) return bias.value();
  Tensor repeated = bias.value().like({H});
  copy_blocks(H, 1, bias.value(), {0, 0}, repeated, {0, 1});
  return repeated;
}

void check_uniform(const char* op, const Tensor& uniform, const Shape& wanted) {
  require(!uniform.defined() || uniform.shape() == wanted,
          "{}: the given noise is {}, the edges are {}", op,
          uniform.defined() ? uniform.shape().to_string() : "", wanted.to_string());
}

// The gate with its given noise on the device of the attention.
GateOptions on_device(GateOptions gate, DeviceKind device) {
  if (gate.uniform.defined()) gate.uniform = gate.uniform.to(device);
  return gate;
}

// Sums of rows [B H, Tq] in a fixed order, each times `factor`.
Tensor row_sums(const Tensor& rows, const Shape& shape, double factor) {
  Tensor sums = rows.like(shape);
  const std::int64_t count = shape.elements();
  if (count == 0) return sums;
  const SumArgs<> args{count,  rows.elements() / count, 1,
                       factor, rows.data<float>(),      sums.mutable_data<float>()};
  if (!rows.on_gpu())
    cpu::sum(args);
  else if constexpr (kHasCuda)
    cuda::sum(args);
  return sums;
}

// Adds dbias [B, H] to the gradient of a bias of [H] or [1].
void add_bias_grad(const Variable& bias, const Tensor& dbias) {
  Variable sums = sum(dbias, 0);  // [H]
  if (bias.size(0) == 1) sums = sum(sums, 0, true);
  bias.accumulate_grad(sums.value().reshape(bias.shape()));
}

// The gate's part of the kernels' arguments.
GateArgs gate_args(const GateOptions& gate, const Tensor& bias) {
  GateArgs args;
  args.bias = bias.data<float>();
  args.sample = gate.sample;
  args.noise = gate.noise;
  args.uniform = gate.uniform.defined() ? gate.uniform.data<float>() : nullptr;
  return args;
}

GatedAttention attend(const AttentionOperands& in, const GatedAttentionOptions& options) {
  const AttentionShape& s = in.shape();
  const Tensor bias = bias_by_head("gated_attention", options.gate.bias, s.H);
  const Shape edges{s.B, s.H, s.Tq, s.Tk};
  check_uniform("gated_attention", options.gate.uniform, edges);

  const GateOptions gate = on_device(options.gate, in.like().device());
  require_same_device("gated_attention", in.like(), bias);
  Tensor z = in.like().like(in.result_shape());
  Tensor z_error = in.room_for_error(z);
  Tensor lse = z.like({s.B, s.H, s.Tq}, DType::kF32);
  Tensor expected_rows = lse.like(lse.shape()), active_rows = lse.like(lse.shape());
  Tensor pattern = options.pattern != nullptr ? lse.like(edges) : Tensor();
  Tensor mask = options.mask != nullptr ? lse.like(edges) : Tensor();
  const auto args = [&](auto type) {
    using T = decltype(type);
    AttentionArgs<T> forward;
    in.fill<T>(forward);
    forward.z = z.mutable_data<T>();
    if (z_error.defined()) forward.z_error = z_error.mutable_data<T>();
    forward.log_sum_exp = lse.mutable_data<float>();
    forward.pattern = pattern.defined() ? pattern.mutable_data<float>() : nullptr;
    forward.gate = gate_args(gate, bias);
    forward.gate.mask = mask.defined() ? mask.mutable_data<float>() : nullptr;
    forward.gate.expected_rows = expected_rows.mutable_data<float>();
    forward.gate.active_rows = active_rows.mutable_data<float>();
    return forward;
  };
  dispatch(
      "gated_attention", z, [&] { cpu::attention(args(float())); },
      [&](auto type) { cuda::attention(args(type)); });
  if (options.pattern != nullptr) *options.pattern = pattern;
  if (options.mask != nullptr) *options.mask = mask;

  const double pairs = seen_pairs(s);
  GatedAttention result;
  result.active = row_sums(active_rows, {s.B, s.H}, 1.0 / pairs);
  Tensor expected = row_sums(expected_rows, {s.B, s.H}, 1.0 / pairs);

  // Both results share one backward pass. The tape runs the closure of `expected` first, because it
  // is recorded last; it leaves its gradient here for the closure of z.
  const auto dexpected = std::make_shared<Tensor>();
  // Kernels of the GPU use z; on the CPU it need not be kept.
  const Tensor kept = z.on_gpu() ? z : Tensor();
  result.z = make_result(std::move(z), {&in.q(), &in.k(), &in.v(), &gate.bias},
                         [in, s, lse, bias, gate, dexpected, kept, z_error](const Tensor& grad) {
                           Tensor dbias = grad.like({s.B, s.H}, DType::kF32);
                           if (!dexpected->defined())
                             *dexpected = Tensor::zeros(dbias.shape(), DType::kF32, grad.device());
                           in.add_gradients("gated_attention", grad,
                                            [&]<typename T>(AttentionGradArgs<T>& back) {
                                              back.log_sum_exp = lse.data<float>();
                                              back.gate = gate_args(gate, bias);
                                              back.dexpected = dexpected->data<float>();
                                              back.dbias = dbias.mutable_data<float>();
                                              if (kept.defined()) back.z = kept.data<T>();
                                              if (z_error.defined())
                                                back.z_error = z_error.data<T>();
                                            });
                           if (gate.bias.requires_grad()) add_bias_grad(gate.bias, dbias);
                         });
  result.expected = make_result(
      std::move(expected), {&in.q(), &in.k(), &in.v(), &gate.bias},
      [z = result.z, dexpected, pairs](const Tensor& grad) {
        *dexpected = scale(grad, static_cast<float>(1.0 / pairs)).value();
        // Without a gradient of its own, z's closure would not run and this one would be lost.
        if (!z.grad().defined())
          z.accumulate_grad(Tensor::zeros(z.shape(), z.value().dtype(), z.value().device()));
      });
  return result;
}

}  // namespace

GatedAttention gated_attention(const Variable& q, const Variable& k, const Variable& v,
                               const GatedAttentionOptions& options) {
  return attend({"gated_attention", q, k, v, options.keys, options.scale, options.score_mask},
                options);
}

GatedAttention gated_attention(const PackedHeads& heads, const GatedAttentionOptions& options) {
  require(options.keys < 0 && options.pattern == nullptr && options.mask == nullptr &&
              !options.score_mask.on(),
          "gated_attention: heads side by side go without a cache, maps, a window and a soft cap");
  return attend({"gated_attention", heads.packed, heads.heads, heads.key_heads, options.scale},
                options);
}

Variable gate_mask(const Variable& scores, const GateOptions& options) {
  const Shape& edges = scores.shape();
  require(edges.rank() == 4, "gate_mask: the scores {} are not [B, H, Tq, Tk]", edges.to_string());
  const std::int64_t B = edges[0], H = edges[1], Tq = edges[2], Tk = edges[3];
  const Tensor bias = bias_by_head("gate_mask", options.bias, H);
  check_uniform("gate_mask", options.uniform, edges);
  const GateOptions gate = on_device(options, scores.value().device());
  require_same_device("gate_mask", scores.value(), bias);
  Tensor mask = scores.value().like(edges);
  // r (1 - r), the slope that the gradient uses.
  Tensor slope = needs_grad({&scores, &gate.bias}) ? mask.like(edges, DType::kF32) : Tensor();
  const auto args = [&](auto type) {
    using T = decltype(type);
    return GateMaskArgs<T>{B,
                           H,
                           Tq,
                           Tk,
                           scores.value().data<T>(),
                           gate_args(gate, bias),
                           mask.mutable_data<T>(),
                           slope.defined() ? slope.mutable_data<float>() : nullptr};
  };
  dispatch(
      "gate_mask", mask, [&] { cpu::gate_mask(args(float())); },
      [&](auto type) { cuda::gate_mask(args(type)); });
  return make_result(std::move(mask), {&scores, &gate.bias},
                     [scores, slope, bias_variable = gate.bias, B, H](const Tensor& grad) {
                       const Tensor d = mul(grad, slope.to(grad.dtype())).value();
                       if (scores.requires_grad()) scores.accumulate_grad(d);
                       if (bias_variable.requires_grad()) {
                         const std::int64_t by_head = d.elements() / (B * H);
                         const Variable rows = Variable(d.to(DType::kF32).reshape({B, H, by_head}));
                         add_bias_grad(bias_variable, sum(rows, -1).value());
                       }
                     });
}

}  // namespace filigree

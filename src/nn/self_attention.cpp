#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/ops.h"
#include "ops/linear/linear_by_head.h"

namespace filigree {
namespace {

// The first `count` positions of a cache's [B, capacity, G, D].
Tensor filled(const Tensor& cached, std::int64_t count) {
  return slice(cached, 1, 0, count).value();
}

// Heads that read, mix and write separately: z -> [B, T, H, width] without the bias.
Variable head_results(const Variable& z, const LinearWeight& o, const LoraAdapter& lora) {
  const std::int64_t B = z.size(0), T = z.size(1), H = z.size(2), D = z.size(3);
  const Variable weight = o.out_in ? transpose(o.weight, 0, 1) : o.weight;  // [H D, width]
  const std::int64_t width = weight.size(1);
  const Variable by_head = transpose(reshape(z, {B * T, H, D}), 0, 1);  // [H, B T, D]
  Variable written = matmul(by_head, reshape(weight, {H, D, width}));   // [H, B T, width]
  if (lora.on()) {
    const std::int64_t rank = lora.down.size(1);
    const Variable h = matmul(by_head, reshape(lora.down, {H, D, rank}));  // [H, B T, rank]
    written = add(written, matmul(scale(h, lora.scale), lora.up));
  }
  return reshape(transpose(written, 0, 1), {B, T, H, width});
}

// [B, T, width] or [B, T, heads, width] -> the heads' [B, T, heads, D]; `positions` [B, T, width]
// are added before, or undefined.
Variable projected(const Variable& shared, const Variable& by_head, const Variable& positions,
                   const LinearWeight& w, const LoraAdapter& lora, std::int64_t heads) {
  if (!by_head.defined()) {
    const Variable y = linear(positions.defined() ? add(shared, positions) : shared, w, lora);
    return reshape(y, {y.size(0), y.size(1), heads, w.outputs() / heads});
  }
  Variable read = by_head;
  if (positions.defined()) {
    const Shape& p = positions.shape();
    read = add(read, reshape(positions, {p[0], p[1], 1, p[2]}));
  }
  const Variable y = linear_by_head(read, w);
  if (!lora.on()) return y;
  const Variable h = linear(read, LinearWeight{lora.down, Variable()});  // [B, T, heads, rank]
  return add(y, linear_by_head(scale(h, lora.scale), LinearWeight{lora.up, Variable()}));
}

// The last `count` positions.
Variable last(const Variable& x, std::int64_t count) {
  return !x.defined() || x.size(1) == count ? x : slice(x, 1, x.size(1) - count, x.size(1));
}

// The heads' [B, T, heads, D] within the bounds that a layer sets to them.
Variable clipped(const Variable& x, const AttentionWeights& w) {
  return w.clip > 0.0f ? clamp(x, w.clip) : x;
}

// The heads' [B, T, heads, D], normalised each by itself or all of a token together.
Variable normalised(const Variable& x, const NormWeights& norm, const TapScope& tap) {
  if (!norm.has_weights()) return x;
  if (norm.heads > 0) return normalise(x, norm, tap);
  const std::int64_t width = norm.weight.size(0);
  if (width == x.size(3)) return normalise(x, norm, tap);
  return reshape(normalise(reshape(x, {x.size(0), x.size(1), width}), norm, tap), x.shape());
}

// The heads' [B, T, heads, D] at the positions from `first` on, turned as in a run of so many.
Variable positioned(const Variable& x, const AttentionWeights& w, std::int64_t first,
                    std::int64_t length) {
  const RotaryTable::Part part = w.rotary->at(first, x.size(1), x.value().device(), length);
  return rotary(x, part.cos, part.sin);
}

// Attention by way of scores and pattern as variables, for taps that change or differentiate them.
Variable spelled_out(const Variable& q, const Variable& k, const Variable& v,
                     const AttentionWeights& w, const TapScope& tap, const GateOptions* gate) {
  const Variable scores = tap("hook_attn_scores", attention_scores(q, k, w.scale, w.mask));
  Variable pattern = softmax(scores);
  if (gate != nullptr) pattern = mul(pattern, tap("hook_gate", gate_mask(scores, *gate)));
  return attention_mix(tap("hook_pattern", pattern), v);
}

// The fused kernels; maps are filled only when a tap wants to read them.
Variable fused(const Variable& q, const Variable& k, const Variable& v, const AttentionWeights& w,
               std::int64_t keys, const TapScope& tap, const GateOptions* gate,
               GateReport* report) {
  Tensor pattern, mask;
  Tensor* wanted_pattern = tap.wants("hook_pattern") ? &pattern : nullptr;
  Variable z;
  if (gate == nullptr) {
    z = attention(q, k, v,
                  {.scale = w.scale, .keys = keys, .mask = w.mask, .pattern = wanted_pattern});
  } else {
    GatedAttentionOptions options;
    options.gate = *gate;
    options.scale = w.scale, options.keys = keys;
    options.score_mask = w.mask;
    options.pattern = wanted_pattern;
    options.mask = tap.wants("hook_gate") ? &mask : nullptr;
    GatedAttention gated = gated_attention(q, k, v, options);
    z = gated.z;
    if (report != nullptr) *report = {gated.expected, gated.active};
    if (mask.defined()) tap("hook_gate", mask);
  }
  if (pattern.defined()) tap("hook_pattern", pattern);
  return z;
}

// The three projections as one layer, where they are ranges side by side of one weight; without a
// weight otherwise.
LinearWeight side_by_side(const AttentionWeights& w) {
  const bool one = w.q.weight.id() == w.k.weight.id() && w.q.weight.id() == w.v.weight.id() &&
                   w.q.out_in == w.k.out_in && w.q.out_in == w.v.out_in &&
                   w.k.begin == w.q.begin + w.q.outputs() && w.v.begin == w.k.begin + w.k.outputs();
  const bool adapted = w.lora.q.on() || w.lora.k.on() || w.lora.v.on();
  if (!one || adapted || w.q.bias.defined() != w.v.bias.defined()) return {};
  LinearWeight all = w.q;
  all.count = w.q.outputs() + w.k.outputs() + w.v.outputs();
  return all;
}

// Attention on projections that one product computes and the kernels read where they lie;
// undefined where that cannot be.
Variable packed(const AttentionInputs& x, const AttentionWeights& w, const TapScope& tap,
                const GateOptions* gate, GateReport* report) {
  if (w.rotary != nullptr || !x.shared.value().on_gpu() || x.q.defined() || x.k.defined() ||
      x.v.defined() || x.positions.defined() || w.mask.bidirectional || w.mask.soft_cap > 0.0f ||
      w.clip > 0.0f || w.q_norm.has_weights() ||
      (w.mask.window > 0 && w.mask.window < x.shared.size(1)))
    return {};
  for (const char* name :
       {"hook_q", "hook_k", "hook_v", "hook_attn_scores", "hook_pattern", "hook_gate"})
    if (tap.wants(name)) return {};
  const LinearWeight all = side_by_side(w);
  if (!all.weight.defined() || (gate != nullptr && gate->uniform.defined())) return {};
  const Shape shape = {x.shared.size(0), x.shared.size(1), all.outputs()};
  if (!attention_reads_packed(x.shared.value(), shape, w.heads, w.key_heads)) return {};
  const PackedHeads heads = {linear(x.shared, all), w.heads, w.key_heads};
  if (gate == nullptr) return attention(heads, w.scale);
  GatedAttentionOptions options;
  options.gate = *gate;
  options.scale = w.scale;
  GatedAttention gated = gated_attention(heads, options);
  if (report != nullptr) *report = {gated.expected, gated.active};
  return gated.z;
}

}  // namespace

Variable self_attention(const AttentionInputs& x, const AttentionWeights& w, const TapScope& tap,
                        KeyValueCache* cache, std::int64_t layer, const GateOptions* gate,
                        GateReport* report, std::int64_t queries) {
  const Variable& any = x.shared.defined() ? x.shared : x.q;
  const std::int64_t B = any.size(0), T = any.size(1);
  const std::int64_t Tq = queries < 0 ? T : queries;
  Variable z;  // [B, T, H, D]
  if (cache == nullptr && Tq == T && x.shared.defined()) z = packed(x, w, tap, gate, report);
  if (!z.defined()) {
    Variable q = tap("hook_q", clipped(projected(last(x.shared, Tq), last(x.q, Tq),
                                                 last(x.positions, Tq), w.q, w.lora.q, w.heads),
                                       w));
    Variable k = tap("hook_k",
                     clipped(projected(x.shared, x.k, x.positions, w.k, w.lora.k, w.key_heads), w));
    Variable v =
        tap("hook_v", clipped(projected(x.shared, x.v, {}, w.v, w.lora.v, w.key_heads), w));
    q = normalised(q, w.q_norm, tap.inside("q_norm"));
    k = normalised(k, w.k_norm, tap.inside("k_norm"));
    const std::int64_t past = cache != nullptr ? cache->length() : 0;
    if (w.rotary != nullptr) {
      q = tap("hook_rot_q", positioned(q, w, past + T - Tq, past + T));
      k = tap("hook_rot_k", positioned(k, w, past, past + T));
    }
    std::int64_t keys = T;
    if (cache != nullptr) {
      require(!q.requires_grad(), "attention: a run with a cache cannot be differentiated");
      cache->append(layer, k.value(), v.value());
      keys = past + T;
      k = cache->keys(layer), v = cache->values(layer);
    }

    const bool by_parts = tap.wants("hook_attn_scores") || tap.needs_graph("hook_pattern") ||
                          (gate != nullptr && tap.needs_graph("hook_gate"));
    if (by_parts) {
      require(report == nullptr,
              "attention: taps on scores or patterns and a report of expected edges exclude each "
              "other");
      if (cache != nullptr) k = filled(k.value(), keys), v = filled(v.value(), keys);
      z = spelled_out(q, k, v, w, tap, gate);
    } else {
      z = fused(q, k, v, w, keys, tap, gate, report);
    }
  }
  z = tap("hook_z", z);

  if (tap.wants("hook_result")) {
    const Variable written =
        sum(tap("hook_result", head_results(z, w.o, w.lora.o)), 2);  // [B, T, width]
    return w.o.bias.defined() ? add(written, w.o.bias) : written;
  }
  return linear(reshape(z, {B, Tq, w.heads * w.head_width}), w.o, w.lora.o);
}

}  // namespace filigree

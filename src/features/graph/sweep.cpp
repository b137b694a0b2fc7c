#include "filigree/features/graph/sweep.h"

#include <algorithm>
#include <map>

#include "filigree/base/error.h"
#include "filigree/ops/matmul/gemm.h"
#include "filigree/runtime/threads.h"

namespace filigree {
namespace {

// The heads of one attention layer, one after the other, on [n, batch, width].
class HeadSweep {
 public:
  HeadSweep(const FrozenModel& frozen, std::int64_t n, std::int64_t batch)
      : frozen_(frozen), n_(n), batch_(batch) {
    parts_ = Tensor::empty({frozen.heads, n, batch, frozen.head_width});
    mixed_ = Tensor::empty({n, batch, frozen.head_width});
  }

  // to += transposed attention of from, which may be the same memory.
  void down(std::int64_t l, const Tensor& from, Tensor& to, const SweepWatch& watch) {
    run(l, from, to, watch, true);
  }
  void up(std::int64_t l, const Tensor& from, Tensor& to, const SweepWatch& watch) {
    run(l, from, to, watch, false);
  }

 private:
  const float* matrix(const FrozenLayer& layer, std::int64_t head, bool output) const {
    const std::int64_t size = frozen_.head_width * frozen_.width;
    const std::int64_t group = head / (frozen_.heads / frozen_.key_heads);
    return output ? layer.output.f32() + head * size : layer.value.f32() + group * size;
  }

  void run(std::int64_t l, const Tensor& from, Tensor& to, const SweepWatch& watch, bool down) {
    const FrozenLayer& layer = frozen_.layer(l);
    const std::int64_t D = frozen_.head_width, width = frozen_.width;
    for (std::int64_t h = 0; h < frozen_.heads; ++h) {
      Tensor part = parts_.rows(h, h + 1).reshape({n_, batch_, D});
      cpu::gemm({.M = n_ * batch_,
                 .N = D,
                 .K = width,
                 .A = from.f32(),
                 .a_row = width,
                 .B = matrix(layer, h, down),
                 .b_row = 1,
                 .b_col = width,
                 .C = part.mutable_f32(),
                 .c_row = D});
      if (watch.head) watch.head(l, h, part);
    }
    for (std::int64_t h = 0; h < frozen_.heads; ++h) {
      const float* pattern = layer.pattern.f32() + h * frozen_.positions * frozen_.positions;
      if (closed(pattern)) continue;
      const std::int64_t row = frozen_.positions;
      cpu::gemm({.M = n_,
                 .N = batch_ * D,
                 .K = n_,
                 .A = pattern,
                 .a_row = down ? 1 : row,
                 .a_col = down ? row : 1,
                 .B = parts_.f32() + h * n_ * batch_ * D,
                 .b_row = batch_ * D,
                 .C = mixed_.mutable_f32(),
                 .c_row = batch_ * D});
      cpu::gemm({.M = n_ * batch_,
                 .N = width,
                 .K = D,
                 .A = mixed_.f32(),
                 .a_row = D,
                 .B = matrix(layer, h, !down),
                 .b_row = width,
                 .C = to.mutable_f32(),
                 .c_row = width,
                 .accumulate = true});
    }
  }

  bool closed(const float* pattern) const {
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        if (pattern[i * frozen_.positions + j] != 0.0f) return false;
    return true;
  }

  const FrozenModel& frozen_;
  std::int64_t n_, batch_;
  Tensor parts_, mixed_;
};

// to += skip of from, or its transpose.
void through_skip(const FrozenModel& frozen, const FrozenLayer& layer, const Tensor& from,
                  Tensor& to, bool down) {
  if (!layer.skip.defined()) return;
  const std::int64_t n = from.size(0), each = from.elements() / n, width = frozen.width;
  Tensor scaled = Tensor::empty({n, each / width, width});
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t i = 0; i < each; ++i)
      scaled.mutable_f32()[p * each + i] =
          from.f32()[p * each + i] * layer.skip_scale[static_cast<std::size_t>(p)];
  cpu::gemm({.M = n * each / width,
             .N = width,
             .K = width,
             .A = scaled.f32(),
             .a_row = width,
             .B = layer.skip.f32(),
             .b_row = down ? width : 1,
             .b_col = down ? 1 : width,
             .C = to.mutable_f32(),
             .c_row = width,
             .accumulate = true});
}

void inject(std::span<const StreamReading* const> readings, std::int64_t stage, Tensor& gradient) {
  const std::int64_t batch = gradient.size(1), width = gradient.size(2);
  for (std::size_t b = 0; b < readings.size(); ++b) {
    if (readings[b]->stage != stage) continue;
    for (const StreamReading::Part& part : readings[b]->parts) {
      float* to =
          gradient.mutable_f32() + (part.position * batch + static_cast<std::int64_t>(b)) * width;
      for (std::int64_t c = 0; c < width; ++c) to[c] += part.vector[static_cast<std::size_t>(c)];
    }
  }
}

// rows[b][source] += gradient . write, for all writes of a stage.
void contract(const StreamWrites& writes, const Tensor& gradient, Tensor& rows) {
  const std::int64_t n = gradient.size(0), batch = gradient.size(1), width = gradient.size(2);
  const std::int64_t total = writes.begin[static_cast<std::size_t>(n)];
  Tensor products = Tensor::empty({std::max<std::int64_t>(1, batch * total)});
  for (std::int64_t p = 0; p < n; ++p) {
    const std::int64_t begin = writes.begin[static_cast<std::size_t>(p)];
    const std::int64_t count = writes.begin[static_cast<std::size_t>(p) + 1] - begin;
    if (count == 0) continue;
    cpu::gemm({.M = batch,
               .N = count,
               .K = width,
               .A = gradient.f32() + p * batch * width,
               .a_row = width,
               .B = writes.rows.f32() + begin * width,
               .b_row = 1,
               .b_col = width,
               .C = products.mutable_f32() + begin * batch,
               .c_row = count});
  }
  const std::int64_t columns = rows.size(1);
  float* const to = rows.mutable_f32();
  parallel_for(batch, 16, [&](std::int64_t from, std::int64_t end) {
    for (std::int64_t b = from; b < end; ++b)
      for (std::int64_t p = 0; p < n; ++p) {
        const std::int64_t begin = writes.begin[static_cast<std::size_t>(p)];
        const std::int64_t count = writes.begin[static_cast<std::size_t>(p) + 1] - begin;
        const float* product = products.f32() + begin * batch + b * count;
        for (std::int64_t k = 0; k < count; ++k)
          to[b * columns + writes.source[static_cast<std::size_t>(begin + k)]] += product[k];
      }
  });
}

// stream += what the chosen sources write; `slot` is where a source is in the batch.
void add_writes(const StreamWrites& writes, const std::map<std::int32_t, std::int64_t>& slot,
                Tensor& stream) {
  const std::int64_t n = stream.size(0), batch = stream.size(1), width = stream.size(2);
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t w = writes.begin[static_cast<std::size_t>(p)];
         w < writes.begin[static_cast<std::size_t>(p) + 1]; ++w) {
      const auto found = slot.find(writes.source[static_cast<std::size_t>(w)]);
      if (found == slot.end()) continue;
      float* to = stream.mutable_f32() + (p * batch + found->second) * width;
      const float* from = writes.rows.f32() + w * width;
      for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
    }
}

}  // namespace

void sweep_down(const FrozenModel& frozen, std::span<const StreamReading* const> readings,
                const SweepWatch& watch) {
  std::int64_t top = 0, n = 1;
  for (const StreamReading* reading : readings) {
    top = std::max(top, reading->stage);
    for (const StreamReading::Part& part : reading->parts) n = std::max(n, part.position + 1);
  }
  const auto batch = static_cast<std::int64_t>(readings.size());
  Tensor gradient = Tensor::zeros({n, batch, frozen.width});
  HeadSweep heads(frozen, n, batch);
  // A stage is read behind the MLP of the layer below, or before that of its own layer.
  for (std::int64_t l = top == 0 ? -1 : (top - 1) / 2; l >= 0; --l) {
    inject(readings, 2 * (l + 1), gradient);
    if (watch.behind_mlp) watch.behind_mlp(l, gradient);
    const Tensor behind =
        frozen.parallel || frozen.layer(l).skip.defined() ? gradient.clone() : Tensor();
    if (behind.defined()) through_skip(frozen, frozen.layer(l), behind, gradient, true);
    inject(readings, 2 * l + 1, gradient);
    const Tensor& attended = frozen.parallel ? behind : gradient;
    if (watch.behind_attention) watch.behind_attention(l, attended);
    if (watch.beside_attention) watch.beside_attention(l, gradient);
    heads.down(l, attended, gradient, watch);
  }
  inject(readings, 0, gradient);
  if (watch.at_embedding) watch.at_embedding(gradient);
}

void sweep_up(const FrozenModel& frozen, const GraphSources& sources,
              std::span<const std::int32_t> chosen, const SweepWatch& watch) {
  const auto batch = static_cast<std::int64_t>(chosen.size());
  std::map<std::int32_t, std::int64_t> slot;
  for (const std::int32_t source : chosen)
    slot.emplace(source, static_cast<std::int64_t>(slot.size()));
  require(std::ssize(slot) == batch, "trace: a source is swept twice");
  Tensor stream = Tensor::zeros({frozen.positions, batch, frozen.width});
  HeadSweep heads(frozen, frozen.positions, batch);
  add_writes(sources.embedding, slot, stream);
  for (std::int64_t l = 0; l < frozen.depth(); ++l) {
    if (watch.beside_attention) watch.beside_attention(l, stream);
    const bool skips = frozen.layer(l).skip.defined();
    const Tensor before = frozen.parallel && skips ? stream.clone() : Tensor();
    heads.up(l, stream, stream, watch);
    add_writes(sources.attention[static_cast<std::size_t>(l)], slot, stream);
    if (skips)
      through_skip(frozen, frozen.layer(l), frozen.parallel ? before : stream.clone(), stream,
                   false);
    add_writes(sources.mlp[static_cast<std::size_t>(l)], slot, stream);
  }
}

Tensor direct_effects(const FrozenModel& frozen, const GraphSources& sources,
                      std::span<const StreamReading* const> readings) {
  Tensor rows = Tensor::zeros({static_cast<std::int64_t>(readings.size()), sources.count() + 1});
  SweepWatch watch;
  watch.behind_mlp = [&](std::int64_t l, const Tensor& gradient) {
    contract(sources.mlp[static_cast<std::size_t>(l)], gradient, rows);
  };
  watch.behind_attention = [&](std::int64_t l, const Tensor& gradient) {
    contract(sources.attention[static_cast<std::size_t>(l)], gradient, rows);
  };
  watch.at_embedding = [&](const Tensor& gradient) { contract(sources.embedding, gradient, rows); };
  sweep_down(frozen, readings, watch);
  for (std::size_t b = 0; b < readings.size(); ++b)
    rows.mutable_f32()[(static_cast<std::int64_t>(b) + 1) * rows.size(1) - 1] +=
        static_cast<float>(readings[b]->constant);
  return rows;
}

}  // namespace filigree

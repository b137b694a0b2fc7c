#include "features/graph/graph_sweep.h"

#include <algorithm>
#include <map>

#include "filigree/error.h"
#include "ops/matmul/gemm.h"

namespace filigree {
namespace {

// Rows that are added to rows of an array; several may go to one.
class AddedRows {
 public:
  void add(std::int64_t to, std::int64_t from) { from_[to].push_back(from); }

  void write(const Tensor& rows, Tensor& to) const {
    const std::int64_t width = rows.size(1);
    RegionList list;
    for (const auto& [row, sources] : from_) {
      list.begin(row * width, width, 1, width, true);
      for (const std::int64_t source : sources) list.add({0, source * width, width});
    }
    write_regions(to, {rows}, list);
  }

 private:
  std::map<std::int64_t, std::vector<std::int64_t>> from_;
};

// Adds the vectors of a stage's readings.
void inject(std::span<const StreamReading* const> readings, std::int64_t stage, Tensor& gradient) {
  const std::int64_t batch = gradient.size(1), width = gradient.size(2);
  AddedRows added;
  std::vector<float> rows;
  for (std::size_t b = 0; b < readings.size(); ++b) {
    if (readings[b]->stage != stage) continue;
    for (const StreamReading::Part& part : readings[b]->parts) {
      added.add(part.position * batch + static_cast<std::int64_t>(b), std::ssize(rows) / width);
      rows.insert(rows.end(), part.vector.begin(), part.vector.end());
    }
  }
  if (rows.empty()) return;
  const Tensor here = Tensor::from({std::ssize(rows) / width, width}, rows);
  added.write(here.to(gradient.device()), gradient);
}

// stream += what the chosen sources write; `slot` is where a source is in the batch.
void add_writes(const StreamWrites& writes, const Tensor& rows,
                const std::map<std::int32_t, std::int64_t>& slot, Tensor& stream) {
  const std::int64_t n = stream.size(0), batch = stream.size(1);
  AddedRows added;
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t w = writes.begin[static_cast<std::size_t>(p)];
         w < writes.begin[static_cast<std::size_t>(p) + 1]; ++w) {
      const auto found = slot.find(writes.source[static_cast<std::size_t>(w)]);
      if (found != slot.end()) added.add(p * batch + found->second, w);
    }
  added.write(rows, stream);
}

bool closed(const Tensor& pattern, std::int64_t head, std::int64_t n) {
  const std::int64_t positions = pattern.size(1);
  const float* cells = pattern.f32() + head * positions * positions;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      if (cells[i * positions + j] != 0.0f) return false;
  return true;
}

}  // namespace

Sweep::Sweep(const FrozenModel& frozen) : frozen_(frozen), device_(frozen.device) {
  for (const FrozenLayer& layer : frozen.layers)
    layers_.push_back({layer.value.to(device_), layer.output.to(device_), layer.pattern.to(device_),
                       layer.skip.defined() ? layer.skip.to(device_) : Tensor()});
}

Sweep::Sweep(const FrozenModel& frozen, const GraphSources& sources) : Sweep(frozen) {
  sources_ = &sources;
  for (const StreamWrites& writes : sources.mlp) mlp_.push_back(writes_of(writes));
  for (const StreamWrites& writes : sources.attention) attention_.push_back(writes_of(writes));
  embedding_ = writes_of(sources.embedding);
}

Sweep::Writes Sweep::writes_of(const StreamWrites& writes) const {
  Writes result{&writes, writes.rows.to(device_), {}};
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Writes::Run>> found;
  const auto source = [&](std::int64_t w) {
    return static_cast<std::int64_t>(writes.source[static_cast<std::size_t>(w)]);
  };
  for (std::int64_t p = 0; p + 1 < std::ssize(writes.begin); ++p) {
    const std::int64_t begin = writes.begin[static_cast<std::size_t>(p)];
    const std::int64_t end = writes.begin[static_cast<std::size_t>(p) + 1];
    for (std::int64_t first = begin, next = begin; first < end; first = next) {
      // Biases stand alone: each position has them, beside others.
      for (next = first + 1;
           next < end && source(next) == source(next - 1) + 1 && source(next) != sources_->bias();)
        ++next;
      found[{source(first), next - first}].push_back({p, first - begin});
    }
  }
  for (auto& [columns, runs] : found)
    result.columns.push_back({columns.first, columns.second, std::move(runs)});
  return result;
}

// to += attention of from, or its transpose; both may be the same memory.
void Sweep::heads(std::int64_t l, const Tensor& from, Tensor& to, Tensor& parts, Tensor& mixed,
                  const SweepWatch& watch, bool down) const {
  const Matrices& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t n = from.size(0), batch = from.size(1);
  const std::int64_t D = frozen_.head_width, width = frozen_.width, row = frozen_.positions;
  const auto matrix = [&](std::int64_t head, bool output) {
    const std::int64_t group = head / (frozen_.heads / frozen_.key_heads);
    return output ? layer.output.data<float>() + head * D * width
                  : layer.value.data<float>() + group * D * width;
  };
  for (std::int64_t h = 0; h < frozen_.heads; ++h) {
    Tensor part = parts.rows(h, h + 1).reshape({n, batch, D});
    gemm_on(device_, GemmArgs<>{.M = n * batch,
                                .N = D,
                                .K = width,
                                .A = from.data<float>(),
                                .a_row = width,
                                .B = matrix(h, down),
                                .b_row = 1,
                                .b_col = width,
                                .C = part.mutable_data<float>(),
                                .c_row = D});
    if (watch.head) watch.head(l, h, part);
  }
  for (std::int64_t h = 0; h < frozen_.heads; ++h) {
    if (closed(frozen_.layer(l).pattern, h, n)) continue;
    gemm_on(device_, GemmArgs<>{.M = n,
                                .N = batch * D,
                                .K = n,
                                .A = layer.pattern.data<float>() + h * row * row,
                                .a_row = down ? 1 : row,
                                .a_col = down ? row : 1,
                                .B = parts.data<float>() + h * n * batch * D,
                                .b_row = batch * D,
                                .C = mixed.mutable_data<float>(),
                                .c_row = batch * D});
    gemm_on(device_, GemmArgs<>{.M = n * batch,
                                .N = width,
                                .K = D,
                                .A = mixed.data<float>(),
                                .a_row = D,
                                .B = matrix(h, !down),
                                .b_row = width,
                                .C = to.mutable_data<float>(),
                                .c_row = width,
                                .accumulate = true});
  }
}

// to += skip of from, or its transpose.
void Sweep::skip(std::int64_t l, const Tensor& from, Tensor& to, bool down) const {
  const Matrices& layer = layers_[static_cast<std::size_t>(l)];
  if (!layer.skip.defined()) return;
  const std::int64_t n = from.size(0), each = from.elements() / n, width = frozen_.width;
  Tensor scaled = from.like(from.shape());
  RegionList list;
  for (std::int64_t p = 0; p < n; ++p) {
    list.begin(p * each, each, 1, each);
    list.add({0, p * each, each, frozen_.layer(l).skip_scale[static_cast<std::size_t>(p)]});
  }
  write_regions(scaled, {from}, list);
  gemm_on(device_, GemmArgs<>{.M = n * each / width,
                              .N = width,
                              .K = width,
                              .A = scaled.data<float>(),
                              .a_row = width,
                              .B = layer.skip.data<float>(),
                              .b_row = down ? width : 1,
                              .b_col = down ? 1 : width,
                              .C = to.mutable_data<float>(),
                              .c_row = width,
                              .accumulate = true});
}

// rows[b][source] += gradient . write, for all writes of a stage.
void Sweep::contract(const Writes& writes, const Tensor& gradient, Tensor& rows) const {
  const std::int64_t n = gradient.size(0), batch = gradient.size(1), width = gradient.size(2);
  const std::vector<std::int64_t>& begin = writes.of->begin;
  const auto begin_of = [&](std::int64_t p) { return begin[static_cast<std::size_t>(p)]; };
  if (begin_of(n) == 0) return;
  Tensor products = gradient.like({batch * begin_of(n)});
  for (std::int64_t p = 0; p < n; ++p) {
    const std::int64_t count = begin_of(p + 1) - begin_of(p);
    if (count == 0) continue;
    gemm_on(device_, GemmArgs<>{.M = batch,
                                .N = count,
                                .K = width,
                                .A = gradient.data<float>() + p * batch * width,
                                .a_row = width,
                                .B = writes.rows.data<float>() + begin_of(p) * width,
                                .b_row = 1,
                                .b_col = width,
                                .C = products.mutable_data<float>() + begin_of(p) * batch,
                                .c_row = count});
  }
  RegionList list;
  for (const Writes::Columns& columns : writes.columns) {
    if (columns.runs[0].position >= n) continue;  // they are in the order of positions
    list.begin(columns.source, columns.count, batch, rows.size(1), true);
    for (const Writes::Run& run : columns.runs) {
      if (run.position >= n) break;
      const std::int64_t p = run.position;
      list.add({0, begin_of(p) * batch + run.first, begin_of(p + 1) - begin_of(p)});
    }
  }
  write_regions(rows, {products}, list);
}

void Sweep::down(std::span<const StreamReading* const> readings, const SweepWatch& watch) const {
  std::int64_t top = 0, n = 1;
  for (const StreamReading* reading : readings) {
    top = std::max(top, reading->stage);
    for (const StreamReading::Part& part : reading->parts) n = std::max(n, part.position + 1);
  }
  const auto batch = static_cast<std::int64_t>(readings.size());
  Tensor gradient = Tensor::zeros({n, batch, frozen_.width}, DType::kF32, device_);
  Tensor parts = gradient.like({frozen_.heads, n, batch, frozen_.head_width});
  Tensor mixed = gradient.like({n, batch, frozen_.head_width});
  // A stage is read behind the MLP of the layer below, or before that of its own layer.
  for (std::int64_t l = top == 0 ? -1 : (top - 1) / 2; l >= 0; --l) {
    inject(readings, 2 * (l + 1), gradient);
    if (watch.behind_mlp) watch.behind_mlp(l, gradient);
    const Tensor behind =
        frozen_.parallel || frozen_.layer(l).skip.defined() ? gradient.clone() : Tensor();
    if (behind.defined()) skip(l, behind, gradient, true);
    inject(readings, 2 * l + 1, gradient);
    const Tensor& attended = frozen_.parallel ? behind : gradient;
    if (watch.behind_attention) watch.behind_attention(l, attended);
    if (watch.beside_attention) watch.beside_attention(l, gradient);
    heads(l, attended, gradient, parts, mixed, watch, true);
  }
  inject(readings, 0, gradient);
  if (watch.at_embedding) watch.at_embedding(gradient);
}

void Sweep::up(std::span<const std::int32_t> chosen, const SweepWatch& watch) const {
  const auto batch = static_cast<std::int64_t>(chosen.size());
  std::map<std::int32_t, std::int64_t> slot;
  for (const std::int32_t source : chosen)
    slot.emplace(source, static_cast<std::int64_t>(slot.size()));
  require(std::ssize(slot) == batch, "trace: a source is swept twice");
  Tensor stream = Tensor::zeros({frozen_.positions, batch, frozen_.width}, DType::kF32, device_);
  Tensor parts = stream.like({frozen_.heads, frozen_.positions, batch, frozen_.head_width});
  Tensor mixed = stream.like({frozen_.positions, batch, frozen_.head_width});
  const auto add = [&](const Writes& writes) { add_writes(*writes.of, writes.rows, slot, stream); };
  add(embedding_);
  for (std::int64_t l = 0; l < frozen_.depth(); ++l) {
    if (watch.beside_attention) watch.beside_attention(l, stream);
    const bool skips = frozen_.layer(l).skip.defined();
    const Tensor before = frozen_.parallel && skips ? stream.clone() : Tensor();
    heads(l, stream, stream, parts, mixed, watch, false);
    add(attention_[static_cast<std::size_t>(l)]);
    if (skips) skip(l, frozen_.parallel ? before : stream.clone(), stream, false);
    add(mlp_[static_cast<std::size_t>(l)]);
  }
}

Tensor Sweep::effects(std::span<const StreamReading* const> readings) const {
  Tensor rows = Tensor::zeros({static_cast<std::int64_t>(readings.size()), sources_->count() + 1},
                              DType::kF32, device_);
  SweepWatch watch;
  watch.behind_mlp = [&](std::int64_t l, const Tensor& gradient) {
    contract(mlp_[static_cast<std::size_t>(l)], gradient, rows);
  };
  watch.behind_attention = [&](std::int64_t l, const Tensor& gradient) {
    contract(attention_[static_cast<std::size_t>(l)], gradient, rows);
  };
  watch.at_embedding = [&](const Tensor& gradient) { contract(embedding_, gradient, rows); };
  down(readings, watch);
  rows = rows.on_host();
  for (std::size_t b = 0; b < readings.size(); ++b)
    rows.mutable_f32()[(static_cast<std::int64_t>(b) + 1) * rows.size(1) - 1] +=
        static_cast<float>(readings[b]->constant);
  return rows;
}

}  // namespace filigree

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "features/graph/graph_sweep.h"
#include "filigree/error.h"
#include "filigree/runtime.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

double product(const float* a, const float* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

Tensor copy_on_host(const Tensor& tensor) {
  return tensor.on_gpu() ? tensor.on_host() : tensor.clone();
}

// What a sweep passes, kept for a chunk of readings or sources: heads' parts and the stream beside
// the attention.
struct KeptSweep {
  std::int64_t n = 0, batch = 0, heads = 0, D = 0, width = 0;
  std::vector<Tensor> parts;   // of layer and head: [n, batch, D]
  std::vector<Tensor> beside;  // of each layer: [n, batch, width]
  std::vector<Tensor> behind;  // downwards, of each layer, behind its MLP

  KeptSweep(const FrozenModel& frozen, std::int64_t count)
      : batch(count),
        heads(frozen.heads),
        D(frozen.head_width),
        width(frozen.width),
        parts(static_cast<std::size_t>(frozen.depth() * frozen.heads)),
        beside(static_cast<std::size_t>(frozen.depth())),
        behind(static_cast<std::size_t>(frozen.depth())) {}

  SweepWatch watch() {
    SweepWatch watch;
    watch.head = [this](std::int64_t l, std::int64_t h, const Tensor& part) {
      parts[static_cast<std::size_t>(l * heads + h)] = copy_on_host(part);
    };
    watch.beside_attention = [this](std::int64_t l, const Tensor& stream) {
      n = stream.size(0);
      beside[static_cast<std::size_t>(l)] = copy_on_host(stream);
    };
    watch.behind_mlp = [this](std::int64_t l, const Tensor& gradient) {
      behind[static_cast<std::size_t>(l)] = copy_on_host(gradient);
    };
    return watch;
  }

  // Null where the sweep did not get: nothing is there.
  const float* part(std::int64_t l, std::int64_t h, std::int64_t p, std::int64_t b) const {
    const Tensor& tensor = parts[static_cast<std::size_t>(l * heads + h)];
    return tensor.defined() && p < n ? tensor.f32() + (p * batch + b) * D : nullptr;
  }
  const float* stream(const std::vector<Tensor>& of, std::int64_t l, std::int64_t p,
                      std::int64_t b) const {
    const Tensor& tensor = of[static_cast<std::size_t>(l)];
    return tensor.defined() && p < n ? tensor.f32() + (p * batch + b) * width : nullptr;
  }
};

// Where each source writes: layer, row of its writes.
struct WrittenAt {
  std::int64_t layer = 0, position = 0, row = 0;
};

std::map<std::int32_t, std::vector<WrittenAt>> writes_of(const GraphSources& sources,
                                                         std::span<const std::int32_t> chosen) {
  std::map<std::int32_t, std::vector<WrittenAt>> found;
  for (const std::int32_t source : chosen) found[source];
  for (std::size_t l = 0; l < sources.mlp.size(); ++l) {
    const StreamWrites& writes = sources.mlp[l];
    for (std::size_t p = 0; p + 1 < writes.begin.size(); ++p)
      for (std::int64_t w = writes.begin[p]; w < writes.begin[p + 1]; ++w) {
        const auto at = found.find(writes.source[static_cast<std::size_t>(w)]);
        if (at != found.end())
          at->second.push_back({static_cast<std::int64_t>(l), static_cast<std::int64_t>(p), w});
      }
  }
  return found;
}

// The split of one effect.
EdgeLoading split(const FrozenModel& frozen, const GraphSources& sources, const KeptSweep& down,
                  std::int64_t t, const KeptSweep& up, std::int64_t s,
                  const std::vector<WrittenAt>& writes, const LoadingOptions& options) {
  const std::int64_t L = frozen.depth(), H = frozen.heads, n = frozen.positions;
  EdgeLoading edge;
  edge.heads = Tensor::zeros({L, H});
  edge.beside.assign(static_cast<std::size_t>(L), 0.0);
  edge.behind.assign(static_cast<std::size_t>(L), 0.0);
  if (options.maps) edge.maps = Tensor::zeros({L, H, n, n});
  for (std::int64_t l = 0; l < L; ++l) {
    for (std::int64_t p = 0; p < n; ++p) {
      const float* gradient = down.stream(down.beside, l, p, t);
      if (gradient != nullptr)
        edge.beside[static_cast<std::size_t>(l)] +=
            product(gradient, up.stream(up.beside, l, p, s), frozen.width);
    }
    for (std::int64_t h = 0; h < H; ++h) {
      const float* pattern = frozen.layer(l).pattern.f32() + h * n * n;
      double sum = 0.0;
      for (std::int64_t i = 0; i < n; ++i) {
        const float* gradient = down.part(l, h, i, t);
        if (gradient == nullptr) break;
        for (std::int64_t j = 0; j <= i; ++j) {
          if (pattern[i * n + j] == 0.0f) continue;
          const double loading = static_cast<double>(pattern[i * n + j]) *
                                 product(gradient, up.part(l, h, j, s), frozen.head_width);
          if (loading == 0.0) continue;
          sum += loading;
          edge.cells.push_back({l, h, i, j, loading});
          if (options.maps)
            edge.maps.mutable_f32()[((l * H + h) * n + i) * n + j] = static_cast<float>(loading);
        }
      }
      edge.heads.mutable_f32()[l * H + h] = static_cast<float>(sum);
    }
  }
  for (const WrittenAt& write : writes) {
    const float* gradient = down.stream(down.behind, write.layer, write.position, t);
    if (gradient == nullptr) continue;
    const double effect = product(
        gradient,
        sources.mlp[static_cast<std::size_t>(write.layer)].rows.f32() + write.row * frozen.width,
        frozen.width);
    for (std::int64_t l = 0; l <= write.layer; ++l)
      edge.behind[static_cast<std::size_t>(l)] += effect;
  }
  const auto kept =
      std::min<std::size_t>(edge.cells.size(), static_cast<std::size_t>(options.cells));
  std::partial_sort(edge.cells.begin(), edge.cells.begin() + static_cast<std::ptrdiff_t>(kept),
                    edge.cells.end(), [](const CellLoading& a, const CellLoading& b) {
                      return std::abs(a.loading) > std::abs(b.loading);
                    });
  edge.cells.resize(kept);
  return edge;
}

// Each of the pairs' readings or sources once, and where it is.
template <typename T>
struct Distinct {
  std::vector<T> all;
  std::map<T, std::int64_t> place;

  void add(T one) {
    if (place.emplace(one, std::ssize(all)).second) all.push_back(one);
  }
};

template <typename T>
std::span<const T> chunk(const std::vector<T>& all, std::size_t from, std::size_t size) {
  return std::span(all).subspan(from, std::min(size, all.size() - from));
}

// The sources of one position, for the model that has only that.
GraphSources sources_at(const GraphSources& sources, std::int64_t position) {
  const auto at = [position](const StreamWrites& all) {
    const auto p = static_cast<std::size_t>(position);
    const std::int64_t begin = all.begin[p], end = all.begin[p + 1];
    return StreamWrites{all.rows.rows(begin, end),
                        {all.source.begin() + begin, all.source.begin() + end},
                        {0, end - begin}};
  };
  GraphSources one;
  one.nodes = sources.nodes;
  for (const StreamWrites& writes : sources.mlp) one.mlp.push_back(at(writes));
  for (const StreamWrites& writes : sources.attention) one.attention.push_back(at(writes));
  one.embedding = at(sources.embedding);
  return one;
}

StreamReading alone(const StreamReading& reading) {
  StreamReading one = reading;
  for (StreamReading::Part& part : one.parts) part.position = 0;
  return one;
}

}  // namespace

std::vector<EdgeLoading> head_loadings(const FrozenModel& frozen, const GraphSources& sources,
                                       const std::vector<SourceReading>& pairs,
                                       const LoadingOptions& options) {
  Distinct<const StreamReading*> readings;
  Distinct<std::int32_t> from;
  for (const SourceReading& pair : pairs) {
    readings.add(pair.reading);
    from.add(pair.source);
  }
  const auto writes = writes_of(sources, from.all);
  // A chunk's sweep is kept: three arrays of the stream's size for every layer, within half a GB.
  constexpr std::int64_t kLargest = std::int64_t{1} << 25;
  const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(
      kLargest / (frozen.positions * frozen.width * frozen.depth()), 1, 512));
  std::vector<EdgeLoading> loadings(pairs.size());
  const Sweep sweep(frozen, sources);
  for (std::size_t first = 0; first < from.all.size(); first += size) {
    const auto chosen = chunk(from.all, first, size);
    KeptSweep up(frozen, std::ssize(chosen));
    sweep.up(chosen, up.watch());
    for (std::size_t top = 0; top < readings.all.size(); top += size) {
      const auto targets = chunk(readings.all, top, size);
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto s = static_cast<std::size_t>(from.place.at(pairs[i].source));
        const auto t = static_cast<std::size_t>(readings.place.at(pairs[i].reading));
        if (s >= first && s < first + size && t >= top && t < top + size) here.push_back(i);
      }
      if (here.empty()) continue;
      KeptSweep down(frozen, std::ssize(targets));
      sweep.down(targets, down.watch());
      parallel_for(std::ssize(here), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          const SourceReading& pair = pairs[here[static_cast<std::size_t>(k)]];
          loadings[here[static_cast<std::size_t>(k)]] =
              split(frozen, sources, down,
                    readings.place.at(pair.reading) - static_cast<std::int64_t>(top), up,
                    from.place.at(pair.source) - static_cast<std::int64_t>(first),
                    writes.at(pair.source), options);
        }
      });
    }
  }
  return loadings;
}

PairLoading pair_loading(const FrozenModel& frozen, const GraphSources& sources,
                         const std::vector<SourceReading>& pairs, std::span<const double> effects,
                         std::int64_t from, std::int64_t to) {
  require(from >= 0 && from < to && to < frozen.positions,
          "trace: nothing is carried from position {} to {}", from, to);
  require(pairs.size() == effects.size(), "trace: {} edges have {} effects", pairs.size(),
          effects.size());
  const std::int64_t L = frozen.depth(), H = frozen.heads, n = frozen.positions;
  PairLoading result{from, to, Tensor::zeros({L, H}), 0.0, 0.0, std::ssize(pairs)};
  if (pairs.empty()) return result;
  const FrozenModel above = frozen.alone(to), below = frozen.alone(from);
  const GraphSources there = sources_at(sources, from);
  Distinct<const StreamReading*> readings;
  Distinct<std::int32_t> chosen;
  for (const SourceReading& pair : pairs) {
    readings.add(pair.reading);
    chosen.add(pair.source);
  }
  std::vector<StreamReading> own;
  for (const StreamReading* reading : readings.all) own.push_back(alone(*reading));
  std::vector<const StreamReading*> targets;
  for (const StreamReading& reading : own) targets.push_back(&reading);
  KeptSweep up(below, std::ssize(chosen.all)), down(above, std::ssize(targets));
  Sweep(below, there).up(chosen.all, up.watch());
  Sweep(above).down(targets, down.watch());

  std::vector<double> heads(static_cast<std::size_t>(L * H));
  double whole = 0.0;
  for (std::size_t e = 0; e < pairs.size(); ++e) {
    const std::int64_t t = readings.place.at(pairs[e].reading);
    const std::int64_t s = chosen.place.at(pairs[e].source);
    const double sign = effects[e] < 0.0 ? -1.0 : 1.0;
    whole += std::abs(effects[e]);
    for (std::int64_t l = 0; l < L; ++l)
      for (std::int64_t h = 0; h < H; ++h) {
        const float weight = frozen.layer(l).pattern.f32()[(h * n + to) * n + from];
        const float* gradient = down.part(l, h, 0, t);
        if (weight == 0.0f || gradient == nullptr) continue;
        heads[static_cast<std::size_t>(l * H + h)] +=
            sign * static_cast<double>(weight) *
            product(gradient, up.part(l, h, 0, s), frozen.head_width);
      }
  }
  std::copy(heads.begin(), heads.end(), result.heads.mutable_f32());
  result.single = std::accumulate(heads.begin(), heads.end(), 0.0);
  result.several = whole - result.single;
  return result;
}

std::vector<RankedHead> ranked_heads(const Tensor& heads) {
  std::vector<RankedHead> ranked;
  for (std::int64_t l = 0; l < heads.size(0); ++l)
    for (std::int64_t h = 0; h < heads.size(1); ++h) {
      const double loading = static_cast<double>(heads.f32()[l * heads.size(1) + h]);
      if (loading != 0.0) ranked.push_back({l, h, loading});
    }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedHead& a, const RankedHead& b) {
    return std::abs(a.loading) > std::abs(b.loading);
  });
  return ranked;
}

std::int64_t fewest_for_share(std::span<const RankedHead> ranked, double share) {
  double all = 0.0, sum = 0.0;
  for (const RankedHead& head : ranked) all += std::abs(head.loading);
  std::int64_t count = 0;
  for (const RankedHead& head : ranked) {
    if (sum >= share * all) break;
    sum += std::abs(head.loading);
    ++count;
  }
  return count;
}

}  // namespace filigree

#include <algorithm>
#include <cmath>
#include <numeric>

#include "features/graph/graph_sweep.h"
#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

// Rows of direct effects as they come, with which features they belong to.
class EffectRows {
 public:
  EffectRows(const FrozenModel& frozen, const GraphSources& sources, const GraphOptions& options)
      : sweep_(frozen, sources), sources_(sources) {
    // A sweep holds about three arrays of this size.
    constexpr std::int64_t kLargest = std::int64_t{1} << 25;
    batch_ = std::clamp<std::int64_t>(kLargest / (frozen.positions * frozen.width), 1,
                                      std::max<std::int64_t>(1, options.batch));
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t count() const { return static_cast<std::int64_t>(readings_.size()); }
  std::span<const float> effects(std::int64_t row) const {
    const Tensor& block =
        blocks_[static_cast<std::size_t>(place_[static_cast<std::size_t>(row)].first)];
    const std::int64_t columns = sources_.count() + 1;
    return {block.f32() + place_[static_cast<std::size_t>(row)].second * columns,
            static_cast<std::size_t>(columns)};
  }

  void add(const std::vector<const StreamReading*>& readings) {
    for (std::size_t from = 0; from < readings.size(); from += static_cast<std::size_t>(batch_)) {
      const std::size_t end = std::min(readings.size(), from + static_cast<std::size_t>(batch_));
      blocks_.push_back(sweep_.effects(std::span(readings).subspan(from, end - from)));
      for (std::size_t r = from; r < end; ++r) {
        readings_.push_back(readings[r]);
        place_.emplace_back(static_cast<std::int64_t>(blocks_.size()) - 1,
                            static_cast<std::int64_t>(r - from));
      }
    }
  }

 private:
  Sweep sweep_;
  const GraphSources& sources_;
  std::int64_t batch_ = 1;
  std::vector<const StreamReading*> readings_;
  std::vector<Tensor> blocks_;
  std::vector<std::pair<std::int64_t, std::int64_t>> place_;  // of each row: block, row in it
};

// Of every active feature, by the rows that are there: the targets', then those of `chosen`.
std::vector<double> partial_influence(const EffectRows& rows, const GraphSources& sources,
                                      const std::vector<GraphTarget>& targets,
                                      const std::vector<std::int64_t>& chosen) {
  std::vector<double> influence(static_cast<std::size_t>(sources.count()));
  const auto add = [&](std::int64_t row, double weight) {
    const auto effects = rows.effects(row).first(influence.size());
    double sum = 0.0;
    for (const float x : effects) sum += std::abs(static_cast<double>(x));
    const double factor = weight / std::max(sum, kSmallestRowSum);
    for (std::size_t s = 0; s < influence.size(); ++s)
      influence[s] += factor * std::abs(static_cast<double>(effects[s]));
  };
  for (std::size_t t = 0; t < targets.size(); ++t)
    add(static_cast<std::int64_t>(t), targets[t].weight);
  // From the last layer down: a feature's influence is known once all later ones are.
  std::vector<std::size_t> order(chosen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return chosen[a] > chosen[b]; });
  for (const std::size_t c : order)
    add(static_cast<std::int64_t>(targets.size() + c),
        influence[static_cast<std::size_t>(chosen[c])]);
  return influence;
}

// Which features become nodes, in the order of their rows.
std::vector<std::int64_t> choose_features(EffectRows& rows, const GraphSources& sources,
                                          const std::vector<GraphTarget>& targets,
                                          const GraphOptions& options) {
  std::vector<std::int64_t> chosen;
  std::vector<bool> taken(static_cast<std::size_t>(sources.features));
  const std::int64_t wanted = std::min(options.max_features, sources.features);
  const auto take = [&](std::vector<std::int64_t> features) {
    std::sort(features.begin(), features.end());  // neighbours share a sweep's depth and length
    std::vector<const StreamReading*> readings;
    for (const std::int64_t f : features) {
      readings.push_back(&sources.readings[static_cast<std::size_t>(f)]);
      taken[static_cast<std::size_t>(f)] = true;
    }
    rows.add(readings);
    chosen.insert(chosen.end(), features.begin(), features.end());
  };
  if (wanted == sources.features) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(wanted));
    std::iota(all.begin(), all.end(), 0);
    take(std::move(all));
    return chosen;
  }
  while (std::ssize(chosen) < wanted) {
    const std::vector<double> influence = partial_influence(rows, sources, targets, chosen);
    std::vector<std::int64_t> rest;
    for (std::int64_t f = 0; f < sources.features; ++f)
      if (!taken[static_cast<std::size_t>(f)]) rest.push_back(f);
    const std::int64_t next = std::min({wanted - std::ssize(chosen), rows.batch() * options.rerank,
                                        static_cast<std::int64_t>(rest.size())});
    std::partial_sort(rest.begin(), rest.begin() + next, rest.end(),
                      [&](std::int64_t a, std::int64_t b) {
                        const double x = influence[static_cast<std::size_t>(a)];
                        const double y = influence[static_cast<std::size_t>(b)];
                        return x != y ? x > y : a < b;
                      });
    rest.resize(static_cast<std::size_t>(next));
    take(std::move(rest));
  }
  return chosen;
}

}  // namespace

AttributionGraph attribution_graph(const FrozenModel& frozen, const GraphSources& sources,
                                   const std::vector<GraphTarget>& targets,
                                   const GraphOptions& options) {
  require(!targets.empty(), "trace: there is nothing to explain");
  require(options.max_features >= 0 && options.rerank > 0 && options.batch > 0,
          "trace: counts of features and batches must be positive");
  EffectRows rows(frozen, sources, options);
  std::vector<const StreamReading*> readings;
  for (const GraphTarget& target : targets) readings.push_back(&target.reading);
  rows.add(readings);
  const std::vector<std::int64_t> chosen = choose_features(rows, sources, targets, options);

  // Features back in their order, and which row each has.
  std::vector<std::int64_t> row_of(static_cast<std::size_t>(sources.features), -1);
  for (std::size_t c = 0; c < chosen.size(); ++c)
    row_of[static_cast<std::size_t>(chosen[c])] = static_cast<std::int64_t>(targets.size() + c);
  AttributionGraph graph;
  graph.active_features = sources.features;
  for (std::int64_t s = 0; s < sources.count(); ++s)
    if (s >= sources.features || row_of[static_cast<std::size_t>(s)] >= 0) {
      graph.source.push_back(static_cast<std::int32_t>(s));
      graph.nodes.push_back(sources.nodes[static_cast<std::size_t>(s)]);
    }
  graph.features = std::ssize(chosen);
  graph.errors = sources.errors, graph.embeddings = sources.embeddings;
  graph.targets = std::ssize(targets);
  for (const GraphTarget& target : targets) {
    graph.nodes.push_back(target.node);
    graph.weight.push_back(target.weight);
  }

  graph.effects = Tensor::empty({graph.rows(), graph.sources()});
  for (std::int64_t r = 0; r < graph.rows(); ++r) {
    const bool feature = r < graph.features;
    const std::int32_t source = feature ? graph.source[static_cast<std::size_t>(r)] : 0;
    const std::int64_t from =
        feature ? row_of[static_cast<std::size_t>(source)] : r - graph.features;
    const std::span<const float> effects = rows.effects(from);
    float* to = graph.effects.mutable_f32() + r * graph.sources();
    for (std::size_t s = 0; s < graph.source.size(); ++s)
      to[s] = effects[static_cast<std::size_t>(graph.source[s])];
    double left_out = 0.0;
    if (graph.features < sources.features)
      for (std::int64_t s = 0; s < sources.features; ++s)
        if (row_of[static_cast<std::size_t>(s)] < 0)
          left_out += static_cast<double>(effects[static_cast<std::size_t>(s)]);
    graph.left_out.push_back(left_out);
    graph.bias.push_back(static_cast<double>(effects.back()));
    graph.value.push_back(feature ? sources.values[static_cast<std::size_t>(source)]
                                  : targets[static_cast<std::size_t>(r - graph.features)].value);
  }
  return graph;
}

}  // namespace filigree

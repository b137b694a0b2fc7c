// Through which heads effects pass. Attention layer by attention layer, an effect of a source on a
// target splits exactly into what each head carries from key j to query i at that layer, by all
// paths before and after it, what passes beside the layer's heads, and what the source writes only
// behind them (features of cross-layer transcoders write to many layers).
#pragma once

#include <cstdint>
#include <vector>

#include "features/graph/attribution_graph.h"

namespace filigree {

// A source's effect on a reading.
struct LoadedPair {
  const StreamReading* reading = nullptr;
  std::int32_t source = 0;
};

struct CellLoading {
  std::int64_t layer = 0, head = 0, query = 0, key = 0;
  double loading = 0.0;
};

struct EdgeLoading {
  Tensor heads;  // [layers, heads]: sums over cells
  // Of each layer. heads + beside + behind is the effect, up to the target's layer; above it
  // nothing passes.
  std::vector<double> beside, behind;
  std::vector<CellLoading> cells;  // the strongest, falling
  Tensor maps;                     // [layers, heads, positions, positions], if asked for
};

struct LoadingOptions {
  std::int64_t cells = 20;
  bool maps = false;
};

std::vector<EdgeLoading> head_loadings(const FrozenModel& frozen, const GraphSources& sources,
                                       const std::vector<LoadedPair>& pairs,
                                       const LoadingOptions& options = {});

// The way from position j to position i: what heads carry over cell (i, j) when nothing else moves
// between positions. Of each edge from a source at j to a target at i, with the sign of the whole
// effect, and summed up.
struct PairLoading {
  std::int64_t from = 0, to = 0;
  Tensor heads;          // [layers, heads]
  double single = 0.0;   // the sum of `heads`: paths of one hop from j to i
  double several = 0.0;  // paths over third positions
  std::int64_t edges = 0;
};
PairLoading pair_loading(const FrozenModel& frozen, const GraphSources& sources,
                         const std::vector<LoadedPair>& pairs, std::span<const double> effects,
                         std::int64_t from, std::int64_t to);

struct RankedHead {
  std::int64_t layer = 0, head = 0;
  double loading = 0.0;
};
// By magnitude, falling; those of no loading are left out.
std::vector<RankedHead> ranked_heads(const Tensor& heads);
// The fewest that make up this share of all magnitudes.
std::int64_t fewest_for_share(std::span<const RankedHead> ranked, double share = 0.8);

}  // namespace filigree

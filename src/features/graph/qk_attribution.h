// Why a head looked where it looked: the score of a cell, and with it the logit of its gate, split
// over the sources that made its query and its key. Sources are carried to the head's input through
// frozen attention and norms, those on queries and keys too, so that the terms sum up to the score
// exactly. A score with a soft cap is the one before it. Elements of queries and keys that were
// clipped are constants.
#pragma once

#include <cstdint>
#include <vector>

#include "features/graph/sweep.h"

namespace filigree {

struct QkCell {
  std::int64_t layer = 0, head = 0, query = 0, key = 0;
};

// The score as a product of what each source brings to query and key; rows are sources, the last
// one the biases: score of (u, v) is queries[u] . keys[v].
struct QkTerms {
  Tensor queries, keys;  // [sources + 1, D]; the scale of scores is in the queries
  double score = 0.0;    // of the run, before a soft cap
  double term(std::int64_t u, std::int64_t v) const;
};
QkTerms qk_terms(const FrozenModel& frozen, const GraphSources& sources, const QkCell& cell);

// What each source brings through the query, the key being what it is, and through the key. Each
// of both sums up to the score.
struct QkMarginals {
  double score = 0.0;
  // score less the mean score of the row, weighted as the softmax weighs: what decides a softmax
  // without gates, since what all keys share cancels.
  double relative_score = 0.0;
  std::vector<float> query, key;                    // [sources + 1]
  std::vector<float> relative_query, relative_key;  // likewise, of the relative score
};
std::vector<QkMarginals> qk_marginals(const FrozenModel& frozen, const GraphSources& sources,
                                      const std::vector<QkCell>& cells);

// Before a soft cap, and as softmax and gate read it.
double cell_score(const FrozenModel& frozen, const QkCell& cell);
double capped_score(const FrozenModel& frozen, double score);

// The fewest sources that make up a share of all marginals' magnitudes, gathered by the token they
// stand at, with the layers that they span.
struct Modulation {
  std::int64_t position = 0;
  std::int64_t first_layer = 0, last_layer = 0;  // of embeddings 0
  double share = 0.0;
  std::int64_t sources = 0;
};
// `weights` are magnitudes, one a source. Tokens by share, falling.
std::vector<Modulation> modulated_by(const GraphSources& sources,
                                     const std::vector<double>& weights, double share = 0.8);

}  // namespace filigree

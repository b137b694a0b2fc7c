#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

// Where rows come from: magnitudes between kept nodes, divided by their sum.
class RowShares {
 public:
  RowShares(const AttributionGraph& graph, const std::vector<bool>* kept)
      : effects_(graph.effects.f32()), sources_(graph.sources()), kept_(kept) {
    for (std::int64_t r = 0; r < graph.rows(); ++r) {
      const float* row = graph.row(r);
      double sum = 0.0;
      for (std::int64_t s = 0; s < graph.sources(); ++s)
        if (keeps(s)) sum += std::abs(static_cast<double>(row[s]));
      factor_.push_back(keeps(graph.node_of_row(r)) ? 1.0 / std::max(sum, kSmallestRowSum) : 0.0);
    }
  }

  double operator()(std::int64_t row, std::int64_t source) const {
    return keeps(source) ? std::abs(static_cast<double>(effects_[row * sources_ + source])) *
                               factor_[static_cast<std::size_t>(row)]
                         : 0.0;
  }

 private:
  bool keeps(std::int64_t node) const {
    return kept_ == nullptr || (*kept_)[static_cast<std::size_t>(node)];
  }

  const float* effects_;
  std::int64_t sources_;
  const std::vector<bool>* kept_;
  std::vector<double> factor_;
};

// Effects run from lower layers to higher ones, so that one pass downwards sums up all paths.
std::vector<double> influence_of(const AttributionGraph& graph, const RowShares& share) {
  std::vector<double> influence(graph.nodes.size());
  std::vector<std::int64_t> order;  // rows: targets, then features from the last layer down
  for (std::int64_t t = 0; t < graph.targets; ++t) order.push_back(graph.features + t);
  for (std::int64_t f = graph.features - 1; f >= 0; --f) order.push_back(f);
  for (const std::int64_t r : order) {
    const double weight = r < graph.features
                              ? influence[static_cast<std::size_t>(r)]
                              : graph.weight[static_cast<std::size_t>(r - graph.features)];
    if (weight == 0.0) continue;
    for (std::int64_t s = 0; s < graph.sources(); ++s)
      influence[static_cast<std::size_t>(s)] += weight * share(r, s);
  }
  return influence;
}

// A row's own influence: its node's, or its weight.
double weight_of_row(const AttributionGraph& graph, const std::vector<double>& influence,
                     std::int64_t r) {
  return r < graph.features ? influence[static_cast<std::size_t>(r)]
                            : graph.weight[static_cast<std::size_t>(r - graph.features)];
}

GraphScores scores_of(const AttributionGraph& graph) {
  const RowShares share(graph, nullptr);
  const std::vector<double> influence = influence_of(graph, share);
  const auto sum = [&](std::int64_t from, std::int64_t end) {
    return std::accumulate(influence.begin() + from, influence.begin() + end, 0.0);
  };
  const double errors = sum(graph.first_error(), graph.first_embedding());
  const double embeddings = sum(graph.first_embedding(), graph.sources());
  GraphScores scores;
  scores.replacement = embeddings / std::max(embeddings + errors, kSmallestRowSum);
  // Nodes without inputs have no errors among them.
  double all = errors + embeddings, explained = all;
  for (std::int64_t r = 0; r < graph.rows(); ++r) {
    double from_errors = 0.0;
    for (std::int64_t e = graph.first_error(); e < graph.first_embedding(); ++e)
      from_errors += share(r, e);
    const double weight = weight_of_row(graph, influence, r);
    all += weight;
    explained += weight * (1.0 - from_errors);
  }
  scores.completeness = explained / std::max(all, kSmallestRowSum);
  return scores;
}

// The smallest of the largest scores that make up this share of all. `scores` is sorted.
double share_threshold(std::vector<double>& scores, double share) {
  if (scores.empty()) return 0.0;
  std::sort(scores.begin(), scores.end(), std::greater<>());
  const double all = std::accumulate(scores.begin(), scores.end(), 0.0);
  double sum = 0.0;
  for (const double score : scores) {
    sum += score;
    if (sum / all >= share) return score;
  }
  return scores.back();
}

std::vector<double> cumulative_shares(const std::vector<double>& influence) {
  std::vector<std::size_t> order(influence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return influence[a] > influence[b]; });
  const double all = std::accumulate(influence.begin(), influence.end(), 0.0);
  std::vector<double> shares(influence.size());
  double sum = 0.0;
  for (const std::size_t node : order)
    shares[node] = (sum += influence[node]) / std::max(all, kSmallestRowSum);
  return shares;
}

// Features need edges in and out, errors edges out; until nothing changes.
void drop_loose_nodes(const AttributionGraph& graph, PrunedGraph& pruned) {
  for (bool changed = true; changed;) {
    std::vector<bool> in(graph.nodes.size()), out(graph.nodes.size());
    for (const EffectEdge& edge : pruned.edges) {
      in[static_cast<std::size_t>(edge.target)] = true;
      out[static_cast<std::size_t>(edge.source)] = true;
    }
    changed = false;
    for (std::int64_t node = 0; node < graph.first_embedding(); ++node) {
      const auto i = static_cast<std::size_t>(node);
      if (!pruned.kept[i] || (out[i] && (in[i] || node >= graph.features))) continue;
      pruned.kept[i] = false, changed = true;
    }
    std::erase_if(pruned.edges, [&](const EffectEdge& edge) {
      return !pruned.kept[static_cast<std::size_t>(edge.target)] ||
             !pruned.kept[static_cast<std::size_t>(edge.source)];
    });
  }
}

// What removed features bring counts as an error of their layer and position, whether or not it is
// among the kept nodes.
GraphScores scores_with_removed(const AttributionGraph& graph, const std::vector<bool>& kept) {
  AttributionGraph changed = graph;
  changed.effects = graph.effects.clone();
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> error_at;
  for (std::int64_t e = graph.first_error(); e < graph.first_embedding(); ++e) {
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(e)];
    error_at[{node.layer, node.position}] = e;
  }
  for (std::int64_t r = 0; r < graph.rows(); ++r) {
    float* row = changed.effects.mutable_f32() + r * graph.sources();
    if (!kept[static_cast<std::size_t>(graph.node_of_row(r))])
      std::fill(row, row + graph.sources(), 0.0f);
    for (std::int64_t s = 0; s < graph.features; ++s) {
      if (kept[static_cast<std::size_t>(s)]) continue;
      const GraphNode& node = graph.nodes[static_cast<std::size_t>(s)];
      row[error_at.at({node.layer, node.position})] += row[s];
      row[s] = 0.0f;
    }
  }
  return scores_of(changed);
}

}  // namespace

std::vector<double> node_influence(const AttributionGraph& graph) {
  return influence_of(graph, RowShares(graph, nullptr));
}

GraphScores graph_scores(const AttributionGraph& graph) { return scores_of(graph); }

std::vector<EffectEdge> influential_edges(const AttributionGraph& graph,
                                          const std::vector<bool>* kept) {
  const RowShares share(graph, kept);
  const std::vector<double> influence = influence_of(graph, share);
  std::vector<EffectEdge> edges;
  for (std::int64_t r = 0; r < graph.rows(); ++r) {
    const double weight = weight_of_row(graph, influence, r);
    if (weight == 0.0) continue;
    for (std::int64_t s = 0; s < graph.sources(); ++s) {
      const double score = share(r, s) * weight;
      if (score != 0.0)
        edges.push_back({graph.node_of_row(r), s, static_cast<double>(graph.row(r)[s]), score});
    }
  }
  return edges;
}

std::int64_t PrunedGraph::count() const { return std::count(kept.begin(), kept.end(), true); }

std::vector<std::int64_t> PrunedGraph::nodes() const {
  std::vector<std::int64_t> nodes;
  for (std::size_t node = 0; node < kept.size(); ++node)
    if (kept[node]) nodes.push_back(static_cast<std::int64_t>(node));
  return nodes;
}

PrunedGraph prune_graph(const AttributionGraph& graph, const PruneOptions& options) {
  require(options.node_share > 0.0 && options.node_share <= 1.0 && options.edge_share > 0.0 &&
              options.edge_share <= 1.0,
          "trace: shares of influence to keep are above 0 and at most 1, not {} and {}",
          options.node_share, options.edge_share);
  PrunedGraph pruned;
  pruned.influence = node_influence(graph);
  pruned.cumulative = cumulative_shares(pruned.influence);
  std::vector<double> sorted = pruned.influence;
  const double least = share_threshold(sorted, options.node_share);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    pruned.kept.push_back(pruned.influence[node] >= least ||
                          static_cast<std::int64_t>(node) >= graph.first_embedding());

  pruned.edges = influential_edges(graph, &pruned.kept);
  std::vector<double> scores;
  for (const EffectEdge& edge : pruned.edges) scores.push_back(edge.influence);
  const double weakest = share_threshold(scores, options.edge_share);
  std::erase_if(pruned.edges, [&](const EffectEdge& edge) { return edge.influence < weakest; });
  drop_loose_nodes(graph, pruned);
  pruned.scores = scores_with_removed(graph, pruned.kept);
  return pruned;
}

}  // namespace filigree

// Numbers of one attention map.
//
// With w_ij the weights, m_i = sum_j w_ij, over the rows i >= 1 (row 0 has one key and no choice;
// it is the only row of a single token):
//
//   peak                mean over rows of max_j w_ij
//   row_mass            mean of m_i: 1 for softmax, less after gates
//   entropy             mean over the rows with mass of -sum_j p_ij log p_ij, p_ij = w_ij / m_i, in
//                       nats; 0 when no row has mass
//   diagonal_dominance  1 when the mean weight on the main diagonal is above that on every offset
//                       1 .. T/2 (those that at least half of the rows have), else 0
//   sink_mass           mean of w_i0
//   active_edges        open edges / causal pairs inside the head's window, over all rows: gates
//                       that are open; without gates every edge, however small its weight
//   keys_per_query      open edges / rows, over all rows
//   empty_rows          share of the rows whose weights are all exactly 0
//   diagonal_weight     mean of w_ii                previous_weight   mean of w_i,i-1
//   strong_off_diagonal 1 when a weight above 0.5 lies off the diagonal (j < i), else 0
//   discretisation      share of the mass that is in weights above 0.9
//   direct_connections  cells off the diagonal with a weight of at least 0.1, per row
//   reads_heads_q, _k, _v   share of what the head reads along its query, key and value that
//   earlier
//                       heads wrote (cross_layer.h)
//   cross_layer_q, _k, _v   earlier heads that wrote at least 5 % of it
//
// Each is given over all rows, and over the rows that attend (some weight is not 0), where those of
// heads together are pooled: a sum and what it is divided by. A row of a gated head may be empty,
// and means over all rows then say more of how many are than of what the others hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/names.h"

namespace filigree {

enum class Statistic {
  kPeak,
  kRowMass,
  kEntropy,
  kDiagonalDominance,
  kSinkMass,
  kActiveEdges,
  kKeysPerQuery,
  kEmptyRows,
  kDiagonalWeight,
  kPreviousWeight,
  kStrongOffDiagonal,
  kDiscretisation,
  kDirectConnections,
  kReadsHeadsQ,
  kReadsHeadsK,
  kReadsHeadsV,
  kCrossLayerQ,
  kCrossLayerK,
  kCrossLayerV,
};
inline constexpr std::size_t kStatistics = 19;

template <>
inline constexpr auto kNames<Statistic> =
    std::to_array<Named<Statistic>>({{Statistic::kPeak, "peak"},
                                     {Statistic::kRowMass, "row_mass"},
                                     {Statistic::kEntropy, "entropy"},
                                     {Statistic::kDiagonalDominance, "diagonal_dominance"},
                                     {Statistic::kSinkMass, "sink_mass"},
                                     {Statistic::kActiveEdges, "active_edges"},
                                     {Statistic::kKeysPerQuery, "keys_per_query"},
                                     {Statistic::kEmptyRows, "empty_rows"},
                                     {Statistic::kDiagonalWeight, "diagonal_weight"},
                                     {Statistic::kPreviousWeight, "previous_weight"},
                                     {Statistic::kStrongOffDiagonal, "strong_off_diagonal"},
                                     {Statistic::kDiscretisation, "discretisation"},
                                     {Statistic::kDirectConnections, "direct_connections"},
                                     {Statistic::kReadsHeadsQ, "reads_heads_q"},
                                     {Statistic::kReadsHeadsK, "reads_heads_k"},
                                     {Statistic::kReadsHeadsV, "reads_heads_v"},
                                     {Statistic::kCrossLayerQ, "cross_layer_q"},
                                     {Statistic::kCrossLayerK, "cross_layer_k"},
                                     {Statistic::kCrossLayerV, "cross_layer_v"}});
// Whether it is a share of edges, rows, maps, mass or what is read: its differences are points.
constexpr bool is_share(Statistic statistic) {
  switch (statistic) {
    case Statistic::kDiagonalDominance:
    case Statistic::kActiveEdges:
    case Statistic::kEmptyRows:
    case Statistic::kStrongOffDiagonal:
    case Statistic::kDiscretisation:
    case Statistic::kReadsHeadsQ:
    case Statistic::kReadsHeadsK:
    case Statistic::kReadsHeadsV: return true;
    default: return false;
  }
}
// "row mass".
std::string heading_of(Statistic statistic);

using StatisticValues = std::array<double, kStatistics>;

struct MapStatistics {
  StatisticValues all = {};
  // Over the rows that attend: a statistic is its sum over its weight. All weights are 0 for a map
  // without such a row.
  StatisticValues attending_sum = {}, attending_weight = {};
  // Cells off the diagonal with a weight of at least kDirectConnection, numbered row by row.
  std::vector<std::uint32_t> connections = {};
};

inline constexpr float kDirectConnection = 0.1f, kStrong = 0.5f, kDiscrete = 0.9f;

// What heads read of earlier ones is not a number: a map does not show it. `weights` and `gate` are
// [T, T] row by row; `gate` may be empty (no gates). T is at least 1. `window`: keys that a query
// sees, 0 for all.
MapStatistics map_statistics(std::span<const float> weights, std::span<const float> gate,
                             std::int64_t T, std::int64_t window = 0);

}  // namespace filigree

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
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "filigree/base/names.h"

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
};
inline constexpr std::size_t kStatistics = 8;

template <>
inline constexpr auto kNames<Statistic> =
    std::to_array<Named<Statistic>>({{Statistic::kPeak, "peak"},
                                     {Statistic::kRowMass, "row_mass"},
                                     {Statistic::kEntropy, "entropy"},
                                     {Statistic::kDiagonalDominance, "diagonal_dominance"},
                                     {Statistic::kSinkMass, "sink_mass"},
                                     {Statistic::kActiveEdges, "active_edges"},
                                     {Statistic::kKeysPerQuery, "keys_per_query"},
                                     {Statistic::kEmptyRows, "empty_rows"}});
// Whether it is a share of edges, rows or maps: its differences are points.
constexpr bool is_share(Statistic statistic) {
  return statistic == Statistic::kDiagonalDominance || statistic == Statistic::kActiveEdges ||
         statistic == Statistic::kEmptyRows;
}
// "row mass".
std::string heading_of(Statistic statistic);

using StatisticValues = std::array<double, kStatistics>;

// `weights` and `gate` are [T, T] row by row; `gate` may be empty (no gates). T is at least 1.
// `window`: keys that a query sees, 0 for all.
StatisticValues map_statistics(std::span<const float> weights, std::span<const float> gate,
                               std::int64_t T, std::int64_t window = 0);

}  // namespace filigree

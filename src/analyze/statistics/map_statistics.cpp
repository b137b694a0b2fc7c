#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "filigree/error.h"
#include "filigree/statistics.h"

namespace filigree {
namespace {

struct Row {
  double mass = 0.0, entropy = 0.0;
  float peak = 0.0f;
};

Row measure(const float* row, std::int64_t keys) {
  Row result;
  double sum_log = 0.0;  // of w log w
  for (std::int64_t j = 0; j < keys; ++j) {
    const float w = row[j];
    if (w <= 0.0f) continue;
    result.mass += static_cast<double>(w);
    sum_log += static_cast<double>(w * std::log(w));
    result.peak = std::max(result.peak, w);
  }
  // -sum p log p with p = w / m is log m - (sum w log w) / m; rounding may leave a trace below 0.
  if (result.mass > 0.0)
    result.entropy = std::max(0.0, std::log(result.mass) - sum_log / result.mass);
  return result;
}

// Edges within the causal mask and the window.
std::int64_t count_edges(std::int64_t T, std::int64_t window) {
  if (window == 0 || window >= T) return T * (T + 1) / 2;
  return window * (window + 1) / 2 + (T - window) * window;
}

std::int64_t edges_of_row(std::int64_t i, std::int64_t window) {
  return window == 0 ? i + 1 : std::min(i + 1, window);
}

std::int64_t open_of_row(std::span<const float> gate, std::int64_t T, std::int64_t i,
                         std::int64_t window) {
  if (gate.empty()) return edges_of_row(i, window);
  const float* row = gate.data() + i * T;
  return std::count_if(row, row + i + 1, [](float e) { return e > 0.0f; });
}

// Rows without mass add nothing to any offset, so that it is the same with and without them.
bool diagonal_dominates(std::span<const float> weights, std::int64_t T, std::int64_t first) {
  std::vector<double> sums(static_cast<std::size_t>(T / 2 + 1), 0.0);
  for (std::int64_t i = first; i < T; ++i) {
    const float* row = weights.data() + i * T + i;
    const std::int64_t most = std::min(i, T / 2);
    for (std::int64_t k = 0; k <= most; ++k)
      sums[static_cast<std::size_t>(k)] += static_cast<double>(row[-k]);
  }
  const double diagonal = sums[0] / static_cast<double>(T - first);
  for (std::int64_t k = 1; k <= T / 2; ++k)
    if (sums[static_cast<std::size_t>(k)] / static_cast<double>(T - k) >= diagonal) return false;
  return T > 1;
}

}  // namespace

std::string heading_of(Statistic statistic) {
  std::string text(name_of(statistic));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

MapStatistics map_statistics(std::span<const float> weights, std::span<const float> gate,
                             std::int64_t T, std::int64_t window) {
  const auto cells = static_cast<std::size_t>(T) * static_cast<std::size_t>(T);
  require(T >= 1 && weights.size() == cells && (gate.empty() || gate.size() == cells),
          "statistics: {} weights and {} gates for a map of {} tokens", weights.size(), gate.size(),
          T);
  const std::int64_t first = T > 1 ? 1 : 0;
  MapStatistics result;
  // Sums over rows; those without mass add 0 to all but the counts.
  double peak = 0, mass = 0, entropy = 0, sink = 0, diagonal = 0, previous = 0, discrete = 0;
  double open = 0, open_attending = 0, edges_attending = 0, rows_attending = 0;
  std::int64_t empty = 0;
  bool strong = false;
  for (std::int64_t i = 0; i < T; ++i) {
    const float* values = weights.data() + i * T;
    const Row row = measure(values, i + 1);
    const auto open_here = static_cast<double>(open_of_row(gate, T, i, window));
    open += open_here;
    // Edges and keys are counted over all rows, the first included.
    if (row.mass > 0.0) {
      open_attending += open_here, rows_attending += 1;
      edges_attending += static_cast<double>(edges_of_row(i, window));
    }
    if (i < first) continue;
    peak += static_cast<double>(row.peak);
    mass += row.mass;
    entropy += row.entropy;
    sink += static_cast<double>(values[0]);
    diagonal += static_cast<double>(values[i]);
    if (i > 0) previous += static_cast<double>(values[i - 1]);
    if (row.mass == 0.0) ++empty;
    for (std::int64_t j = 0; j <= i; ++j) {
      if (values[j] > kDiscrete) discrete += static_cast<double>(values[j]);
      if (j == i) continue;
      strong = strong || values[j] > kStrong;
      if (values[j] >= kDirectConnection)
        result.connections.push_back(static_cast<std::uint32_t>(i * T + j));
    }
  }
  const auto rows = static_cast<double>(T - first);
  const double with_mass = rows - static_cast<double>(empty);
  const auto connections = static_cast<double>(result.connections.size());
  const double attends = with_mass > 0.0 ? 1.0 : 0.0;
  const auto set = [&](Statistic statistic, double value, double sum, double weight) {
    const auto s = static_cast<std::size_t>(statistic);
    result.all[s] = value;
    result.attending_sum[s] = weight > 0.0 ? sum : 0.0;
    result.attending_weight[s] = weight;
  };
  const auto by_row = [&](Statistic statistic, double sum) {
    set(statistic, sum / rows, sum, with_mass);
  };
  const auto by_map = [&](Statistic statistic, double value) {
    set(statistic, value, value, attends);
  };
  by_row(Statistic::kPeak, peak);
  by_row(Statistic::kRowMass, mass);
  set(Statistic::kEntropy, with_mass > 0.0 ? entropy / with_mass : 0.0, entropy, with_mass);
  by_map(Statistic::kDiagonalDominance, diagonal_dominates(weights, T, first) ? 1.0 : 0.0);
  by_row(Statistic::kSinkMass, sink);
  set(Statistic::kActiveEdges, open / static_cast<double>(count_edges(T, window)), open_attending,
      edges_attending);
  set(Statistic::kKeysPerQuery, open / static_cast<double>(T), open_attending, rows_attending);
  set(Statistic::kEmptyRows, static_cast<double>(empty) / rows, 0.0, attends);
  by_row(Statistic::kDiagonalWeight, diagonal);
  by_row(Statistic::kPreviousWeight, previous);
  by_map(Statistic::kStrongOffDiagonal, strong ? 1.0 : 0.0);
  set(Statistic::kDiscretisation, mass > 0.0 ? discrete / mass : 0.0, discrete, mass);
  by_row(Statistic::kDirectConnections, connections);
  for (auto s = static_cast<std::size_t>(Statistic::kReadsHeadsQ); s < kStatistics; ++s)
    result.all[s] = std::numeric_limits<double>::quiet_NaN();  // a map does not show it
  return result;
}

}  // namespace filigree

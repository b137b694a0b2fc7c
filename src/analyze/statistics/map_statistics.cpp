#include "filigree/analyze/statistics/map_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "filigree/base/error.h"

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

std::int64_t count_open(std::span<const float> gate, std::int64_t T, std::int64_t window) {
  if (gate.empty()) return count_edges(T, window);
  std::int64_t open = 0;
  for (std::int64_t i = 0; i < T; ++i) {
    const float* row = gate.data() + i * T;
    open += std::count_if(row, row + i + 1, [](float e) { return e > 0.0f; });
  }
  return open;
}

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

StatisticValues map_statistics(std::span<const float> weights, std::span<const float> gate,
                               std::int64_t T, std::int64_t window) {
  const auto cells = static_cast<std::size_t>(T) * static_cast<std::size_t>(T);
  require(T >= 1 && weights.size() == cells && (gate.empty() || gate.size() == cells),
          "statistics: {} weights and {} gates for a map of {} tokens", weights.size(), gate.size(),
          T);
  const std::int64_t first = T > 1 ? 1 : 0;
  double peak = 0.0, mass = 0.0, entropy = 0.0, sink = 0.0;
  std::int64_t empty = 0;
  for (std::int64_t i = first; i < T; ++i) {
    const float* values = weights.data() + i * T;
    const Row row = measure(values, i + 1);
    peak += static_cast<double>(row.peak);
    mass += row.mass;
    entropy += row.entropy;
    sink += static_cast<double>(values[0]);
    if (row.mass == 0.0) ++empty;
  }
  const auto rows = static_cast<double>(T - first);
  const double with_mass = rows - static_cast<double>(empty);
  const auto open = static_cast<double>(count_open(gate, T, window));
  StatisticValues result = {};
  const auto set = [&](Statistic statistic, double value) {
    result[static_cast<std::size_t>(statistic)] = value;
  };
  set(Statistic::kPeak, peak / rows);
  set(Statistic::kRowMass, mass / rows);
  set(Statistic::kEntropy, with_mass > 0.0 ? entropy / with_mass : 0.0);
  set(Statistic::kDiagonalDominance, diagonal_dominates(weights, T, first) ? 1.0 : 0.0);
  set(Statistic::kSinkMass, sink / rows);
  set(Statistic::kActiveEdges, open / static_cast<double>(count_edges(T, window)));
  set(Statistic::kKeysPerQuery, open / static_cast<double>(T));
  set(Statistic::kEmptyRows, static_cast<double>(empty) / rows);
  return result;
}

}  // namespace filigree

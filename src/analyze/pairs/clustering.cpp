#include <algorithm>
#include <limits>

#include "filigree/error.h"
#include "filigree/maps.h"

namespace filigree {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Joins the leaves so that the nearest ends meet.
std::vector<std::size_t> joined(std::vector<std::size_t> a, std::vector<std::size_t> b,
                                std::span<const double> correlation, std::size_t n) {
  const auto r = [&](std::size_t x, std::size_t y) { return correlation[x * n + y]; };
  double best = r(a.back(), b.front());
  bool turn_a = false, turn_b = false;
  const auto try_ends = [&](std::size_t x, std::size_t y, bool ta, bool tb) {
    if (r(x, y) <= best) return;
    best = r(x, y), turn_a = ta, turn_b = tb;
  };
  try_ends(a.back(), b.back(), false, true);
  try_ends(a.front(), b.front(), true, false);
  try_ends(a.front(), b.back(), true, true);
  if (turn_a) std::reverse(a.begin(), a.end());
  if (turn_b) std::reverse(b.begin(), b.end());
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Clustering cluster(std::span<const double> correlation, std::size_t n) {
  require(correlation.size() == n * n, "clustering: {} correlations for {} items",
          correlation.size(), n);
  Clustering result;
  if (n == 0) return result;
  std::vector<double> distance(n * n);
  std::vector<std::vector<std::size_t>> leaves(n);
  std::vector<std::size_t> name(n);  // of the cluster that lives at this index
  std::vector<bool> alive(n, true);
  for (std::size_t a = 0; a < n; ++a) {
    leaves[a] = {a};
    name[a] = a;
    for (std::size_t b = 0; b < n; ++b) distance[a * n + b] = 1.0 - correlation[a * n + b];
  }
  // Each index remembers its nearest one further on, so that a step looks at n and not at n^2.
  std::vector<std::size_t> nearest(n, 0);
  std::vector<double> nearest_distance(n, kFar);
  const auto look = [&](std::size_t a) {
    nearest_distance[a] = kFar;
    for (std::size_t b = a + 1; b < n; ++b)
      if (alive[b] && distance[a * n + b] < nearest_distance[a])
        nearest_distance[a] = distance[a * n + b], nearest[a] = b;
  };
  for (std::size_t a = 0; a < n; ++a) look(a);
  for (std::size_t merge = 0; merge + 1 < n; ++merge) {
    std::size_t a = n;
    for (std::size_t c = 0; c < n; ++c)
      if (alive[c] && nearest_distance[c] < kFar &&
          (a == n || nearest_distance[c] < nearest_distance[a]))
        a = c;
    const std::size_t b = nearest[a];
    result.merges.push_back({name[a], name[b], distance[a * n + b]});
    const auto size_a = static_cast<double>(leaves[a].size());
    const auto size_b = static_cast<double>(leaves[b].size());
    for (std::size_t c = 0; c < n; ++c) {
      if (!alive[c] || c == a || c == b) continue;
      distance[a * n + c] = distance[c * n + a] =
          (size_a * distance[a * n + c] + size_b * distance[b * n + c]) / (size_a + size_b);
    }
    leaves[a] = joined(std::move(leaves[a]), std::move(leaves[b]), correlation, n);
    name[a] = n + merge;
    alive[b] = false;
    look(a);
    for (std::size_t c = 0; c < n; ++c) {
      if (!alive[c] || c >= b) continue;
      if (nearest[c] == a || nearest[c] == b) {
        look(c);
      } else if (c < a && distance[c * n + a] < nearest_distance[c]) {
        nearest_distance[c] = distance[c * n + a], nearest[c] = a;
      }
    }
  }
  for (std::size_t c = 0; c < n; ++c)
    if (alive[c]) result.order = std::move(leaves[c]);
  return result;
}

}  // namespace filigree

// An order of heads in which like stands beside like: hierarchical clustering with average linkage
// of the distances 1 - r.
//
// The two nearest clusters are joined until one is left; the distance of two clusters is the mean
// over their pairs. When two are joined, each may be turned around so that the ends that meet are
// the nearest ones.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace filigree {

struct Clustering {
  // Joined clusters: 0 .. n - 1 are the items, n + m is what merge m made.
  struct Merge {
    std::size_t first = 0, second = 0;
    double distance = 0.0;
  };
  std::vector<Merge> merges;       // n - 1
  std::vector<std::size_t> order;  // items, as they should stand
};

// `correlation` is n x n and symmetric. Equal distances are joined lowest number first.
Clustering cluster(std::span<const double> correlation, std::size_t n);

}  // namespace filigree

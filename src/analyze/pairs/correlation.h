// Correlation matrices of many series over cells that come in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace filigree {

// A symmetric matrix of n x n correlations, row by row. A series that is constant correlates with
// nothing: 0, and 1 with itself.
using CorrelationMatrix = std::vector<double>;

// Pearson's correlation of n series. Each piece is a matrix product in single precision, the pieces
// are summed in double precision; keep the values near 0 (take off a rough mean) so that nothing
// cancels.
class CorrelationSums {
 public:
  explicit CorrelationSums(std::size_t series);

  // [series, cells]: the next cells of all series, of which only the first `count` columns count;
  // the others must be 0. `weight`: how many cells each of them stands for.
  void add(const Tensor& cells, std::int64_t count, double weight = 1.0);

  CorrelationMatrix matrix() const;

 private:
  std::size_t series_;
  double weight_ = 0.0;
  std::vector<double> sums_, products_;
  std::vector<float> least_, most_;  // of each series: equal when it is constant
};

// Ranks from 1, equal values sharing the mean of theirs.
std::vector<float> ranks_of(std::span<const float> values);

// Spearman's correlation: Pearson's of the ranks. `values` is [series, cells] row by row, with
// `stride` values from one series to the next.
CorrelationMatrix rank_correlation(std::span<const float> values, std::size_t series,
                                   std::size_t cells, std::size_t stride);

}  // namespace filigree

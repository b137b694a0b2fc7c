#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/maps.h"

namespace filigree {
namespace {

constexpr std::uint64_t kReservoirStream = std::uint64_t{0x4E5E4} << 40;
constexpr double kFarthest = 9e15;  // beyond every stream, and exact in a double

// In (0, 1), so that its logarithm is finite.
double open_uniform(Random& random) { return std::max(random.uniform_double(), 0x1p-53); }

}  // namespace

Cell cell_at(std::int64_t number) {
  auto query =
      static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(number) + 1.0) - 1.0) / 2.0);
  // The square root may be off by one at either end.
  while (causal_cells(query) > number) --query;
  while (causal_cells(query + 1) <= number) ++query;
  return {query, number - causal_cells(query)};
}

std::vector<Cell> stratified_cells(std::int64_t length, std::int64_t most, std::uint64_t seed,
                                   std::uint64_t stream) {
  require(most > 0, "cells: at least one must be taken");
  const std::int64_t all = causal_cells(length);
  std::vector<Cell> cells;
  if (all <= most) {
    cells.reserve(static_cast<std::size_t>(all));
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t j = 0; j <= i; ++j) cells.push_back({i, j});
    return cells;
  }
  cells.reserve(static_cast<std::size_t>(most));
  Random random(seed, stream);
  for (std::int64_t s = 0; s < most; ++s) {
    // all * s fits: maps have far fewer than 2^31 cells, and so have samples.
    const std::int64_t begin = all * s / most, end = all * (s + 1) / most;
    cells.push_back(cell_at(
        begin + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end - begin)))));
  }
  return cells;
}

CellReservoir::CellReservoir(std::size_t capacity, std::uint64_t seed)
    : capacity_(static_cast<std::int64_t>(capacity)), random_(seed, kReservoirStream) {
  require(capacity > 0, "cells: a reservoir needs room for at least one");
}

// From the last kept cell on, the number of cells passed over is geometric.
void CellReservoir::skip() {
  w_ *= std::exp(std::log(open_uniform(random_)) / static_cast<double>(capacity_));
  const double passed = std::floor(std::log(open_uniform(random_)) / std::log1p(-w_));
  next_ += 1 + static_cast<std::int64_t>(std::min(passed, kFarthest));
}

std::vector<CellReservoir::Kept> CellReservoir::take(std::int64_t length) {
  std::vector<Kept> kept;
  const std::int64_t end = seen_ + causal_cells(length);
  while (next_ < end) {
    const Cell cell = cell_at(next_ - seen_);
    if (next_ < capacity_) {
      kept.push_back({static_cast<std::size_t>(next_), cell});
      if (++next_ == capacity_) {
        --next_;  // skip() counts from the last one kept
        skip();
      }
    } else {
      kept.push_back(
          {static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(capacity_))), cell});
      skip();
    }
  }
  seen_ = end;
  return kept;
}

}  // namespace filigree

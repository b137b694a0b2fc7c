// Which cells of attention maps are looked at when not all can be.
//
// The causal cells of a map of T tokens are numbered row by row: (0,0), (1,0), (1,1), (2,0), ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace filigree {

struct Cell {
  std::int64_t query = 0, key = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

inline std::int64_t causal_cells(std::int64_t length) { return length * (length + 1) / 2; }
Cell cell_at(std::int64_t number);

// All cells when there are at most `most`; else one at random of each of `most` equal stretches of
// their numbers, in order. A function of the arguments alone.
std::vector<Cell> stratified_cells(std::int64_t length, std::int64_t most, std::uint64_t seed,
                                   std::uint64_t stream);

// An even sample of a fixed number of cells of a stream of maps that ends nobody knows when
// (reservoir sampling, Li's algorithm L): after every map, each cell so far was equally likely to
// be kept.
class CellReservoir {
 public:
  CellReservoir(std::size_t capacity, std::uint64_t seed);

  struct Kept {
    std::size_t place = 0;  // in the reservoir; a later one replaces an earlier one
    Cell cell = {};
  };
  // Those of the next map that are kept, in order.
  std::vector<Kept> take(std::int64_t length);

  std::size_t filled() const {
    return seen_ < capacity_ ? static_cast<std::size_t>(seen_)
                             : static_cast<std::size_t>(capacity_);
  }
  std::int64_t seen() const { return seen_; }

 private:
  void skip();

  std::int64_t capacity_;
  Random random_;
  std::int64_t seen_ = 0;  // cells
  std::int64_t next_ = 0;  // number of the next cell to keep, in the whole stream
  double w_ = 1.0;
};

}  // namespace filigree

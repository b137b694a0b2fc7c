// The cosines and sines of rotary positions (ops/rotary), computed once a position.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "filigree/tensor/tensor.h"

namespace filigree {

// Angles that a step of one position turns the pairs of `width` elements by: base^(-2 i / width).
std::vector<double> rotary_steps(std::int64_t width, double base);

class RotaryTable {
 public:
  // One angle a pair.
  explicit RotaryTable(std::vector<double> steps) : steps_(std::move(steps)) {}

  struct Part {
    Tensor cos, sin;  // [count, pairs], f32
  };
  // Of the positions from `first` on. The table grows as far as it is asked for; several threads
  // may ask at once.
  Part at(std::int64_t first, std::int64_t count, DeviceKind device) const;

 private:
  std::vector<double> steps_;
  mutable std::mutex mutex_;
  mutable std::array<Part, 2> tables_;  // by device
};

}  // namespace filigree

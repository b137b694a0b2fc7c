// The cosines and sines of rotary positions (ops/rotary), computed once a position.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tensor/tensor.h"

namespace filigree {

// How angles are made smaller for contexts that are longer than those first trained on.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,  // all by the factor
    // Those that turn slowly by the factor, those that turn fast not at all, and between the two by
    // something between; slow and fast by how often `original_context` positions turn them.
    kLlama3,
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_frequency = 1.0, high_frequency = 4.0;  // of kLlama3: turns in the original context
  double original_context = 0.0;
};

// Angles that a step of one position turns the pairs of `width` elements by: base^(-2 i / width),
// scaled. An odd width has a pair for its last element, as in transformers.
std::vector<double> rotary_steps(std::int64_t width, double base,
                                 const RotaryScaling& scaling = {});

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

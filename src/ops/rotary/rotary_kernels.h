#pragma once

#include <cstdint>

namespace filigree {

// Turns the pairs (i, i + pairs) of each head by the angle of its position; with `back`, by minus
// that angle, which is what the gradient needs.
template <typename T = float>
struct RotaryArgs {
  std::int64_t rows = 0;       // B T
  std::int64_t positions = 0;  // T: row r has position r % T
  std::int64_t heads = 0, width = 0, pairs = 0;
  bool back = false;
  const T* x = nullptr;        // [rows, heads, width]
  const float* cos = nullptr;  // [positions, pairs]
  const float* sin = nullptr;
  T* y = nullptr;
};

namespace cpu {
void rotary(const RotaryArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void rotary(const RotaryArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

#include "filigree/features/files/matrix_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace filigree {
namespace {

constexpr float kLargestInteger = 127.0f;

}  // namespace

std::string integers_name(std::string_view matrix) { return fmt::format("{}_i8", matrix); }
std::string scales_name(std::string_view matrix) { return fmt::format("{}_scale", matrix); }

float row_scale(std::span<const float> row) {
  float largest = 0.0f;
  for (const float value : row) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(value));
  }
  float scale = largest / kLargestInteger;
  // What is read is 127 * scale, rounded; of a tie the scale that follows from it is the next one,
  // and that one's is itself.
  if (std::isinf(kLargestInteger * scale)) scale = std::nextafter(scale, 0.0f);
  return kLargestInteger * scale / kLargestInteger;
}

void to_integers(std::span<const float> row, float scale, std::int8_t* to) {
  for (std::size_t i = 0; i < row.size(); ++i)
    to[i] = scale == 0.0f ? std::int8_t{0}
                          : static_cast<std::int8_t>(std::clamp(std::nearbyint(row[i] / scale),
                                                                -kLargestInteger, kLargestInteger));
}

}  // namespace filigree

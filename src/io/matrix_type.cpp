#include "io/matrix_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr float kLargestInteger = 127.0f;
constexpr std::string_view kIntegersEnd = "_i8", kScalesEnd = "_scale";

std::string_view without_end(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : std::string_view();
}

}  // namespace

DType number_type(MatrixType type) {
  return type == MatrixType::kBf16  ? DType::kBf16
         : type == MatrixType::kF16 ? DType::kF16
                                    : DType::kF32;
}

void require_finite_as(MatrixType type, std::span<const float> numbers, std::string_view tensor) {
  // The smallest that rounds to infinity, halfway between the largest and what would come next.
  float limit = std::numeric_limits<float>::infinity();
  if (type == MatrixType::kF16) limit = 65520.0f;
  if (type == MatrixType::kBf16) limit = std::bit_cast<float>(0x7F7F8000u);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::abs(numbers[i]) < limit) continue;
    require(std::isfinite(numbers[i]),
            "tensor '{}' has {} at element {}; mend it, or have such numbers kept",
            printable(tensor), numbers[i], i);
    fail(
        "tensor '{}' has {} at element {}, which {} makes infinite; choose f32 or bf16, or have "
        "such "
        "numbers kept",
        printable(tensor), numbers[i], i, name_of(type));
  }
}

std::string integers_name(std::string_view matrix) {
  return fmt::format("{}{}", matrix, kIntegersEnd);
}
std::string scales_name(std::string_view matrix) { return fmt::format("{}{}", matrix, kScalesEnd); }
std::string_view matrix_of_integers(std::string_view tensor) {
  return without_end(tensor, kIntegersEnd);
}
std::string_view matrix_of_scales(std::string_view tensor) {
  return without_end(tensor, kScalesEnd);
}

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

void check_eight_bits(const TensorView& integers, const TensorView& scales) {
  require(integers.kind == TensorKind::kI8, "tensor '{}' is {}, should be I8",
          printable(integers.name), name_of(integers.kind));
  require(scales.kind == TensorKind::kF32, "tensor '{}' is {}, should be F32",
          printable(scales.name), name_of(scales.kind));
  std::vector<std::int64_t> rows = integers.shape;
  require(!rows.empty() && rows.back() > 0, "tensor '{}' is {}, which has no rows",
          printable(integers.name), shape_text(integers.shape));
  rows.pop_back();
  require(scales.shape == rows, "tensor '{}' is {}, should be {}, a scale for each row",
          printable(scales.name), shape_text(scales.shape), shape_text(rows));
  std::vector<float> values(static_cast<std::size_t>(scales.element_count()));
  read_f32(scales, values);
  for (const float scale : values)
    require(std::isfinite(scale) && scale >= 0.0f,
            "tensor '{}' has the scale {}; they are finite and not negative",
            printable(scales.name), scale);
}

void read_eight_bits(const TensorView& integers, const TensorView& scales, std::span<float> to) {
  std::vector<float> factors(static_cast<std::size_t>(scales.element_count()));
  read_f32(scales, factors);
  const auto width = static_cast<std::size_t>(integers.shape.back());
  const auto* from = reinterpret_cast<const std::int8_t*>(integers.bytes().data());
  for (std::size_t row = 0; row < factors.size(); ++row)
    for (std::size_t i = row * width; i < (row + 1) * width; ++i)
      to[i] = static_cast<float>(from[i]) * factors[row];
}

}  // namespace filigree

#include <algorithm>
#include <bit>

#include "filigree/device.h"

namespace filigree {
namespace {

// The conversions select between computed values instead of branching, so that the loops below
// vectorise.

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = (half & 0x7FFFu) << 13;  // exponent and mantissa in f32's place
  // Normal numbers need the difference of the exponent biases (127 - 15), infinities and NaN twice
  // that.
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t special = magnitude + (224u << 23);
  // Zero and subnormals: with the exponent of 2^-14 put in front, subtracting 2^-14 leaves
  // mantissa * 2^-24, exactly.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f);
  const std::uint32_t finite = magnitude < (1u << 23) ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= (31u << 23) ? special : finite));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t normal = (magnitude + 0xFFFu + odd - (112u << 23)) >> 13;
  // Below the smallest normal half, 2^-14: adding 0.5, whose last bit is worth 2^-24, makes the f32
  // addition do the rounding; the low bits are then the subnormal half.
  const float aligned = std::bit_cast<float>(std::min(magnitude, 0x38800000u)) + 0.5f;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const std::uint32_t special = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;  // NaN or infinite
  // From 65520 on, halfway beyond the largest half, numbers round to infinity.
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477FF000u ? special : finite));
}

std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  // Cutting a NaN's mantissa could leave that of an infinity; the top bit keeps it a NaN.
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

}  // namespace

void bf16_to_f32(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
}

void f16_to_f32(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = half_to_float(from[i]);
}

void f32_to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_to_bfloat(from[i]);
}

void f32_to_f16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_to_half(from[i]);
}

}  // namespace filigree

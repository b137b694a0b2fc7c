// Element types. Arithmetic is in f32; bf16 and f16 are storage formats on the CPU, i32 holds token
// ids. On the GPU activations may be bf16: kernels read and write it and compute in f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/name_table.h"

namespace filigree {

enum class DType { kF32, kBf16, kF16, kI32 };

template <>
inline constexpr auto kNames<DType> = std::to_array<Named<DType>>(
    {{DType::kF32, "f32"}, {DType::kBf16, "bf16"}, {DType::kF16, "f16"}, {DType::kI32, "i32"}});

// A bf16 as kernels' arguments name it: the upper half of an f32.
struct Bf16 {
  std::uint16_t bits;
};

// The DType of a C++ type.
template <typename T>
inline constexpr DType kDTypeOf = DType::kF32;
template <>
inline constexpr DType kDTypeOf<Bf16> = DType::kBf16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;

constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kI32 ? 4 : 2;
}

// Conversions of `count` elements. To the 16-bit formats they round to nearest, ties to even; NaN
// stays NaN, and values beyond f16's range become infinite.
void bf16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f32_to_bf16(const float* from, std::uint16_t* to, std::size_t count);
void f32_to_f16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace filigree

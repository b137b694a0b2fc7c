// How the matrices of a transcoder lie in files: as numbers of a type, or as 8-bit integers with a
// scale for each row of the model's width, value = integer * scale.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "filigree/base/names.h"

namespace filigree {

enum class MatrixType { kF32, kBf16, kF16, kI8 };

template <>
inline constexpr auto kNames<MatrixType> =
    std::to_array<Named<MatrixType>>({{MatrixType::kF32, "f32"},
                                      {MatrixType::kBf16, "bf16"},
                                      {MatrixType::kF16, "f16"},
                                      {MatrixType::kI8, "i8"}});

// The key of config.yaml that says i8; without it tensors say their type themselves.
inline constexpr const char* kMatrixTypeKey = "matrix_type";

// The two tensors of an 8-bit matrix. Neither has the matrix' own name, so that a program that does
// not know of scales finds no matrix instead of integers.
std::string integers_name(std::string_view matrix);
std::string scales_name(std::string_view matrix);

// The largest magnitude over 127, or its neighbour where that is not what the row has once it was
// written and read, so that writing it again gives the same bits. 0 for a row of zeros, NaN for one
// with a value that is not finite.
float row_scale(std::span<const float> row);
// The nearest integers, ties to even.
void to_integers(std::span<const float> row, float scale, std::int8_t* to);

}  // namespace filigree

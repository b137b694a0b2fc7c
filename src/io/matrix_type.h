// How the matrices of models and transcoders lie in files: as numbers of a type, or as 8-bit
// integers with a scale for each row of the last extent, value = integer * scale.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "filigree/device.h"
#include "filigree/weights.h"
#include "io/safetensors.h"

namespace filigree {

// Throws Error, naming the tensor, the first such number and its place.
void require_finite_as(MatrixType type, std::span<const float> numbers, std::string_view tensor);

// f32 for i8, whose numbers are computed with as that.
DType number_type(MatrixType type);

// The key of a transcoder's config.yaml that says i8; without it tensors say their type themselves.
inline constexpr const char* kMatrixTypeKey = "matrix_type";

// The two tensors of an 8-bit matrix. Neither has the matrix' own name, so that a program that does
// not know of scales finds no matrix instead of integers.
std::string integers_name(std::string_view matrix);
std::string scales_name(std::string_view matrix);
// The matrix that such integers or scales are of; empty for another name.
std::string_view matrix_of_integers(std::string_view tensor);
std::string_view matrix_of_scales(std::string_view tensor);

// The largest magnitude over 127, or its neighbour where that is not what the row has once it was
// written and read, so that writing it again gives the same bits. 0 for a row of zeros, NaN for one
// with a value that is not finite.
float row_scale(std::span<const float> row);
// The nearest integers, ties to even.
void to_integers(std::span<const float> row, float scale, std::int8_t* to);

// Throws Error, naming the tensors, unless these are I8 and F32 of fitting shapes and the scales
// are finite and not negative.
void check_eight_bits(const TensorView& integers, const TensorView& scales);
// The numbers of checked tensors.
void read_eight_bits(const TensorView& integers, const TensorView& scales, std::span<float> to);

}  // namespace filigree

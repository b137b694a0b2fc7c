// The quantised types of GGUF files as f32. A row is blocks of 32 or 256 integers with a scale or
// two, some with scales of parts of the block. The numbers are bit for bit those of Python's gguf
// package: the same products and sums in the same order, each rounded to f32.
#pragma once

#include <cstddef>
#include <span>

#include "io/tensor_kind.h"

namespace filigree {

// Whole blocks. Throws Error for a kind that is not quantised or when the sizes differ.
void dequantize(TensorKind kind, std::span<const std::byte> blocks, std::span<float> to);

}  // namespace filigree

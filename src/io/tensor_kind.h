// Element types of tensors in files: those that a safetensors file may name, and the quantised ones
// of GGUF files. All of them open, so that a checkpoint with buffers of other types (a boolean
// attention mask, say) is readable; only those with a DType and the quantised ones can be computed
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "filigree/device.h"

namespace filigree {

// In the order in which the format's reference implementation lays tensors out, widest last.
enum class TensorKind : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  // Of GGUF: blocks of integers that share scales, along the last extent (io/dequantize.h).
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Nl,
  kIq4Xs,
};

std::string_view name_of(TensorKind kind);  // as in the file: "F32", "BF16", "Q4_K", ...
// Of an element that is stored by itself. Throws Error for a quantised kind.
std::size_t bits_of(TensorKind kind);
// The kind that safetensors files call so; quantised ones are not among them.
std::optional<TensorKind> tensor_kind(std::string_view name);

// Elements and bytes of a block; one element and its bytes rounded up where elements stand alone.
struct BlockSize {
  std::size_t elements = 1;
  std::size_t bytes = 0;
};
BlockSize block_of(TensorKind kind);
bool is_quantised(TensorKind kind);

// The computable ones, both ways.
std::optional<DType> dtype_of(TensorKind kind);
TensorKind kind_of(DType dtype);

// "[2, 3]".
std::string shape_text(std::span<const std::int64_t> shape);

// Bytes of a tensor. Throws Error starting with `label` on a negative dimension, when the product
// of the non-zero dimensions does not fit (so strides computed from the shape cannot overflow
// either), when elements below one byte do not fill whole bytes, or when rows of a quantised kind
// are not whole blocks.
std::size_t tensor_bytes(std::string_view label, TensorKind kind,
                         std::span<const std::int64_t> shape);

}  // namespace filigree

// Element types a safetensors file may name. All of them open, so that a checkpoint with buffers of
// other types (a boolean attention mask, say) is readable; only those with a DType can be computed
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
};

std::string_view name_of(TensorKind kind);  // as in the file: "F32", "BF16", ...
std::size_t bits_of(TensorKind kind);
std::optional<TensorKind> tensor_kind(std::string_view name);

// The computable ones, both ways.
std::optional<DType> dtype_of(TensorKind kind);
TensorKind kind_of(DType dtype);

// "[2, 3]".
std::string shape_text(std::span<const std::int64_t> shape);

// Bytes of a tensor. Throws Error starting with `label` on a negative dimension, when the product
// of the non-zero dimensions does not fit (so strides computed from the shape cannot overflow
// either), or when elements below one byte do not fill whole bytes.
std::size_t tensor_bytes(std::string_view label, TensorKind kind,
                         std::span<const std::int64_t> shape);

}  // namespace filigree

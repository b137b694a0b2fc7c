#include "io/tensor_kind.h"

#include <fmt/format.h>

#include <array>

#include "filigree/error.h"

namespace filigree {
namespace {

struct KindInfo {
  std::string_view name;
  std::size_t bits;  // of a block
  std::size_t elements = 1;
};

constexpr std::size_t kSafetensorsKinds = 20;

constexpr std::array<KindInfo, 32> kKindTable = {{
    {"BOOL", 8},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8},
    {"I8", 8},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E8M0", 8},
    {"I16", 16},
    {"U16", 16},
    {"F16", 16},
    {"BF16", 16},
    {"I32", 32},
    {"U32", 32},
    {"F32", 32},
    {"C64", 64},
    {"F64", 64},
    {"I64", 64},
    {"U64", 64},
    {"Q4_0", 18 * 8, 32},
    {"Q4_1", 20 * 8, 32},
    {"Q5_0", 22 * 8, 32},
    {"Q5_1", 24 * 8, 32},
    {"Q8_0", 34 * 8, 32},
    {"Q2_K", 84 * 8, 256},
    {"Q3_K", 110 * 8, 256},
    {"Q4_K", 144 * 8, 256},
    {"Q5_K", 176 * 8, 256},
    {"Q6_K", 210 * 8, 256},
    {"IQ4_NL", 18 * 8, 32},
    {"IQ4_XS", 136 * 8, 256},
}};
static_assert(kKindTable.size() == static_cast<std::size_t>(TensorKind::kIq4Xs) + 1);
static_assert(kSafetensorsKinds == static_cast<std::size_t>(TensorKind::kU64) + 1);

const KindInfo& info(TensorKind kind) { return kKindTable.at(static_cast<std::size_t>(kind)); }

}  // namespace

std::string_view name_of(TensorKind kind) { return info(kind).name; }

std::size_t bits_of(TensorKind kind) {
  require(!is_quantised(kind), "elements of {} have no size of their own; blocks of {} have",
          name_of(kind), info(kind).elements);
  return info(kind).bits;
}

BlockSize block_of(TensorKind kind) { return {info(kind).elements, (info(kind).bits + 7) / 8}; }

bool is_quantised(TensorKind kind) { return info(kind).elements > 1; }

std::optional<TensorKind> tensor_kind(std::string_view name) {
  for (std::size_t i = 0; i < kSafetensorsKinds; ++i)
    if (kKindTable[i].name == name) return static_cast<TensorKind>(i);
  return std::nullopt;
}

std::optional<DType> dtype_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::kF32: return DType::kF32;
    case TensorKind::kBf16: return DType::kBf16;
    case TensorKind::kF16: return DType::kF16;
    case TensorKind::kI32: return DType::kI32;
    default: return std::nullopt;
  }
}

TensorKind kind_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return TensorKind::kF32;
    case DType::kBf16: return TensorKind::kBf16;
    case DType::kF16: return TensorKind::kF16;
    case DType::kI32: return TensorKind::kI32;
  }
  fail("safetensors: dtype number {} has no name in the format", static_cast<int>(dtype));
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::size_t tensor_bytes(std::string_view label, TensorKind kind,
                         std::span<const std::int64_t> shape) {
  std::int64_t bits = static_cast<std::int64_t>(info(kind).bits);
  const auto block = static_cast<std::int64_t>(info(kind).elements);
  if (block > 1 && (shape.empty() || shape.back() % block != 0))
    fail("{}: rows of shape {} are not whole blocks of {}, which have {} elements", label,
         shape_text(shape), name_of(kind), block);
  bool empty = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t dimension = i + 1 == shape.size() ? shape[i] / block : shape[i];
    if (dimension < 0) fail("{}: shape {} has a negative dimension", label, shape_text(shape));
    if (dimension == 0)
      empty = true;
    else if (__builtin_mul_overflow(bits, dimension, &bits))
      fail("{}: shape {} of {} is too large to be addressed", label, shape_text(shape),
           name_of(kind));
  }
  if (empty) return 0;
  if (bits % 8 != 0)
    fail("{}: shape {} of {} does not fill whole bytes", label, shape_text(shape), name_of(kind));
  return static_cast<std::size_t>(bits / 8);
}

}  // namespace filigree

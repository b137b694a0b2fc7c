#include "io/dequantize.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "filigree/device.h"
#include "filigree/error.h"

// CMakeLists.txt compiles this file without fused multiply-add: a product and a sum are two
// roundings.
namespace filigree {
namespace {

using Bytes = const std::uint8_t*;

constexpr int kSmall = 32;   // elements of a block with one scale
constexpr int kLarge = 256;  // of one with scales of its parts

float half_at(Bytes from) {
  std::uint16_t half;
  std::memcpy(&half, from, sizeof half);
  float value;
  f16_to_f32(&half, &value, 1);
  return value;
}

template <typename Word>
Word word_at(Bytes from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// 4-bit integers of a small block: the first half in the low halves of the bytes.
int nibble(Bytes packed, int i) { return i < 16 ? packed[i] & 15 : packed[i - 16] >> 4; }

void q4_0(Bytes block, float* to) {
  const float scale = half_at(block);
  for (int i = 0; i < kSmall; ++i) to[i] = scale * static_cast<float>(nibble(block + 2, i) - 8);
}

void q4_1(Bytes block, float* to) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < kSmall; ++i) {
    const float product = scale * static_cast<float>(nibble(block + 4, i));
    to[i] = product + least;
  }
}

int with_fifth_bit(std::uint32_t high, Bytes packed, int i) {
  return nibble(packed, i) | static_cast<int>((high >> i) & 1) << 4;
}

void q5_0(Bytes block, float* to) {
  const float scale = half_at(block);
  const auto high = word_at<std::uint32_t>(block + 2);
  for (int i = 0; i < kSmall; ++i)
    to[i] = scale * static_cast<float>(with_fifth_bit(high, block + 6, i) - 16);
}

void q5_1(Bytes block, float* to) {
  const float scale = half_at(block), least = half_at(block + 2);
  const auto high = word_at<std::uint32_t>(block + 4);
  for (int i = 0; i < kSmall; ++i) {
    const float product = scale * static_cast<float>(with_fifth_bit(high, block + 8, i));
    to[i] = product + least;
  }
}

void q8_0(Bytes block, float* to) {
  const float scale = half_at(block);
  for (int i = 0; i < kSmall; ++i)
    to[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale;
}

// 2-bit integers of a large block: 32 bytes hold four stretches of 32, one above the other.
int two_bits(Bytes packed, int i) {
  return (packed[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
}

void q2_k(Bytes block, float* to) {
  const Bytes scales = block, packed = block + 16;
  const float scale = half_at(block + 80), least = half_at(block + 82);
  for (int part = 0; part < 16; ++part) {
    const float factor = scale * static_cast<float>(scales[part] & 15);
    const float offset = least * static_cast<float>(scales[part] >> 4);
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const float product = factor * static_cast<float>(two_bits(packed, i));
      to[i] = product - offset;
    }
  }
}

void q3_k(Bytes block, float* to) {
  const Bytes mask = block, packed = block + 32, scales = block + 96;
  const float scale = half_at(block + 108);
  for (int part = 0; part < 16; ++part) {
    // 6 bits: four in one of eight bytes, two in one of four behind them.
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int high = (scales[8 + part % 4] >> (part / 4 * 2)) & 3;
    const float factor = scale * static_cast<float>((low | high << 4) - 32);
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const int below = (mask[i % 32] >> (i / 32)) & 1 ? 0 : 4;
      to[i] = factor * static_cast<float>(two_bits(packed, i) - below);
    }
  }
}

struct PartScale {
  int scale, least;
};

// The 6-bit scales of the eight parts of a block, in 12 bytes.
PartScale part_scale(Bytes scales, int part) {
  if (part < 4) return {scales[part] & 63, scales[part + 4] & 63};
  const int j = part - 4;
  return {(scales[8 + j] & 15) | ((scales[j] >> 2) & 48),
          (scales[8 + j] >> 4) | ((scales[4 + j] >> 2) & 48)};
}

// 4-bit integers of a large block: 32 bytes hold two stretches of 32.
int stretch_nibble(Bytes packed, int i) {
  return (packed[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15;
}

// Integers of four bits, or of five where `high` holds the fifth ones.
void scaled_parts(Bytes block, Bytes high, Bytes packed, float* to) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const PartScale of_part = part_scale(block + 4, part);
    const float factor = scale * static_cast<float>(of_part.scale);
    const float offset = least * static_cast<float>(of_part.least);
    for (int i = part * 32; i < part * 32 + 32; ++i) {
      const int fifth = high == nullptr ? 0 : (high[i % 32] >> part) & 1;
      const float product = factor * static_cast<float>(stretch_nibble(packed, i) | fifth << 4);
      to[i] = product - offset;
    }
  }
}

void q4_k(Bytes block, float* to) { scaled_parts(block, nullptr, block + 16, to); }
void q5_k(Bytes block, float* to) { scaled_parts(block, block + 16, block + 48, to); }

void q6_k(Bytes block, float* to) {
  const Bytes low = block, high = block + 128, scales = block + 192;
  const float scale = half_at(block + 208);
  for (int part = 0; part < 16; ++part) {
    const float factor = scale * static_cast<float>(static_cast<std::int8_t>(scales[part]));
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const int four = (low[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4)) & 15;
      to[i] = factor * static_cast<float>((four | two_bits(high, i) << 4) - 32);
    }
  }
}

// The values that the 4-bit integers of IQ4_NL and IQ4_XS stand for.
constexpr std::array<std::int8_t, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};

void iq4_nl(Bytes block, float* to) {
  const float scale = half_at(block);
  for (int i = 0; i < kSmall; ++i)
    to[i] = scale * static_cast<float>(kUneven[static_cast<std::size_t>(nibble(block + 2, i))]);
}

void iq4_xs(Bytes block, float* to) {
  const float scale = half_at(block);
  const int high = word_at<std::uint16_t>(block + 2);
  const Bytes low = block + 4, packed = block + 8;
  for (int part = 0; part < 8; ++part) {
    const int six = ((low[part / 2] >> (part % 2 * 4)) & 15) | ((high >> (2 * part)) & 3) << 4;
    const float factor = scale * static_cast<float>(six - 32);
    for (int i = 0; i < 32; ++i)
      to[part * 32 + i] =
          factor *
          static_cast<float>(kUneven[static_cast<std::size_t>(nibble(packed + part * 16, i))]);
  }
}

using Unpack = void (*)(Bytes block, float* to);

Unpack unpacking(TensorKind kind) {
  switch (kind) {
    case TensorKind::kQ4_0: return q4_0;
    case TensorKind::kQ4_1: return q4_1;
    case TensorKind::kQ5_0: return q5_0;
    case TensorKind::kQ5_1: return q5_1;
    case TensorKind::kQ8_0: return q8_0;
    case TensorKind::kQ2_K: return q2_k;
    case TensorKind::kQ3_K: return q3_k;
    case TensorKind::kQ4_K: return q4_k;
    case TensorKind::kQ5_K: return q5_k;
    case TensorKind::kQ6_K: return q6_k;
    case TensorKind::kIq4Nl: return iq4_nl;
    case TensorKind::kIq4Xs: return iq4_xs;
    default: fail("{} is not a quantised type", name_of(kind));
  }
}

}  // namespace

void dequantize(TensorKind kind, std::span<const std::byte> blocks, std::span<float> to) {
  const Unpack unpack = unpacking(kind);
  const BlockSize size = block_of(kind);
  const std::size_t count = blocks.size() / size.bytes;
  require(blocks.size() % size.bytes == 0 && to.size() == count * size.elements,
          "{} bytes of {} are not {} numbers", blocks.size(), name_of(kind), to.size());
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data());
  for (std::size_t b = 0; b < count; ++b)
    unpack(from + b * size.bytes, to.data() + b * size.elements);
}

}  // namespace filigree

// Every 16-bit value both ways, and the rounding of every boundary between two neighbours, against
// arithmetic in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "filigree/device.h"

namespace filigree {
namespace {

// A binary format of 16 bits as the standard defines it, evaluated in double.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity() const { return ((1u << exponent_bits) - 1u) << mantissa_bits; }

  // The value of a non-negative finite encoding; of infinity()'s encoding, the value that the next
  // number would have if the exponents went on.
  double value(std::uint32_t magnitude) const {
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double mantissa = magnitude & ((1u << mantissa_bits) - 1u);
    const double scale = std::ldexp(1.0, -mantissa_bits);
    if (exponent == 0) return std::ldexp(mantissa * scale, 1 - bias());
    return std::ldexp(1.0 + mantissa * scale, exponent - bias());
  }
};

struct Conversion {
  Format format;
  void (*widen)(const std::uint16_t*, float*, std::size_t);
  void (*narrow)(const float*, std::uint16_t*, std::size_t);
};

class DTypeConversion : public testing::TestWithParam<Conversion> {
 protected:
  float widen(std::uint32_t bits) const {
    const auto half = static_cast<std::uint16_t>(bits);
    float value = 0.0f;
    GetParam().widen(&half, &value, 1);
    return value;
  }
  std::uint32_t narrow(float value) const {
    std::uint16_t bits = 0;
    GetParam().narrow(&value, &bits, 1);
    return bits;
  }
};

TEST_P(DTypeConversion, WidensEveryValueExactly) {
  const Format format = GetParam().format;
  std::vector<std::uint16_t> bits(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  GetParam().widen(bits.data(), values.data(), bits.size());
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const std::uint32_t magnitude = i & 0x7FFFu;
    ASSERT_EQ(std::signbit(values[i]), i >= 0x8000u) << i;
    if (magnitude > format.infinity())
      ASSERT_TRUE(std::isnan(values[i])) << i;
    else if (magnitude == format.infinity())
      ASSERT_TRUE(std::isinf(values[i])) << i;
    else
      ASSERT_EQ(std::abs(static_cast<double>(values[i])), format.value(magnitude)) << i;
  }
}

TEST_P(DTypeConversion, EveryValueComesBack) {
  std::vector<std::uint16_t> bits(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  GetParam().widen(bits.data(), values.data(), bits.size());
  std::vector<std::uint16_t> back(bits.size());
  GetParam().narrow(values.data(), back.data(), values.size());
  for (std::uint32_t i = 0; i < 65536; ++i) {
    if (std::isnan(values[i])) {
      ASSERT_TRUE(std::isnan(widen(back[i]))) << i;
      ASSERT_EQ(back[i] & 0x8000u, i & 0x8000u) << i;
    } else {
      ASSERT_EQ(back[i], i);
    }
  }
}

TEST_P(DTypeConversion, RoundsToNearestTiesToEven) {
  const Format format = GetParam().format;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::uint32_t low = 0; low < format.infinity(); ++low) {
    const double middle = (format.value(low) + format.value(low + 1)) / 2;
    const auto tie = static_cast<float>(middle);
    if (static_cast<double>(tie) != middle) {
      // Only between 0 and bf16's smallest number, where f32 itself ends; there is no tie there.
      ASSERT_LT(middle, 1e-44);
      continue;
    }
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const float direction = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(narrow(direction * tie), sign | even) << low;
      ASSERT_EQ(narrow(direction * std::nextafter(tie, 0.0f)), sign | low) << low;
      ASSERT_EQ(narrow(direction * std::nextafter(tie, kInfinity)), sign | (low + 1)) << low;
    }
  }
}

TEST_P(DTypeConversion, HandlesTheEndsOfTheRange) {
  const std::uint32_t infinity = GetParam().format.infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_EQ(narrow(kLargest), infinity);
  EXPECT_EQ(narrow(-kLargest), 0x8000u | infinity);
  EXPECT_EQ(narrow(std::numeric_limits<float>::infinity()), infinity);
  EXPECT_EQ(narrow(0.0f), 0u);
  EXPECT_EQ(narrow(-0.0f), 0x8000u);
  // A NaN whose payload lies entirely in the bits that are cut off.
  const std::uint32_t low_payload = 0x7F800001u;
  float nan = 0.0f;
  static_assert(sizeof(nan) == sizeof(low_payload));
  std::memcpy(&nan, &low_payload, sizeof(nan));
  EXPECT_TRUE(std::isnan(widen(narrow(nan))));
}

INSTANTIATE_TEST_SUITE_P(Formats, DTypeConversion,
                         testing::Values(Conversion{{5, 10}, f16_to_f32, f32_to_f16},
                                         Conversion{{8, 7}, bf16_to_f32, f32_to_bf16}),
                         [](const auto& test) { return test.index == 0 ? "F16" : "Bf16"; });

TEST(DType, HasNamesAndSizes) {
  EXPECT_EQ(name_of(DType::kF32), "f32");
  EXPECT_EQ(name_of(DType::kBf16), "bf16");
  EXPECT_EQ(name_of(DType::kF16), "f16");
  EXPECT_EQ(name_of(DType::kI32), "i32");
  EXPECT_EQ(size_of(DType::kF32), 4u);
  EXPECT_EQ(size_of(DType::kBf16), 2u);
  EXPECT_EQ(size_of(DType::kF16), 2u);
  EXPECT_EQ(size_of(DType::kI32), 4u);
}

}  // namespace
}  // namespace filigree

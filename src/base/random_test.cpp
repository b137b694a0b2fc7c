// Philox against its published known answers, and the distributions made of it.
#include "filigree/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "filigree/error.h"

namespace filigree {
namespace {

std::vector<std::uint32_t> words_of(const PhiloxBlock& block) {
  return {std::begin(block.words), std::end(block.words)};
}

TEST(Philox, MatchesThePublishedVectors) {
  // philox4x32-10 of the known-answer file that comes with Random123.
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(words_of(philox4x32({{0, 0, 0, 0}}, 0, 0)),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(words_of(philox4x32({{kOnes, kOnes, kOnes, kOnes}}, kOnes, kOnes)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words_of(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
                                0x299f31d0)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAConstantExpression) {
  static_assert(philox4x32({{0, 0, 0, 0}}, 0, 0).words[0] == 0x6627e8d5);
}

TEST(Philox, SeedStreamAndIndexFillKeyAndCounter) {
  const PhiloxBlock block =
      random_block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
  EXPECT_EQ(block.words[0], 0xd16cfe09u);
}

TEST(Uniform, StaysInsideItsInterval) {
  EXPECT_EQ(uniform_from(0), 0.0f);
  EXPECT_LT(uniform_from(0xffffffff), 1.0f);
  EXPECT_GT(open_uniform_from(0), 0.0f);
  EXPECT_LT(open_uniform_from(0xffffffff), 1.0f);
}

TEST(Normals, AreFiniteForTheExtremeWords) {
  for (const std::uint32_t u : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
    for (const std::uint32_t v : {0u, 0xffffffffu}) {
      const NormalPair pair = normals_from(u, v);
      EXPECT_TRUE(std::isfinite(pair.first) && std::isfinite(pair.second)) << u << ' ' << v;
    }
  }
  EXPECT_NEAR(normals_from(0, 0).first, std::sqrt(-2.0 * std::log(0x1p-33)), 1e-5);
}

TEST(Fill, DoesNotDependOnTheSplit) {
  std::vector<float> whole(103);
  fill_normal(whole, 7, 3);
  std::vector<float> parts(whole.size());
  for (std::size_t begin = 0; begin < parts.size();) {
    const std::size_t count = std::min<std::size_t>(begin % 7 + 1, parts.size() - begin);
    fill_normal(std::span(parts).subspan(begin, count), 7, 3, begin);
    begin += count;
  }
  EXPECT_EQ(parts, whole);
}

TEST(Fill, StreamsAndSeedsDiffer) {
  std::set<std::vector<float>> seen;
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 40})
    for (const std::uint64_t stream :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
      std::vector<float> values(8);
      fill_uniform(values, seed, stream);
      seen.insert(values);
    }
  EXPECT_EQ(seen.size(), 9u);
}

TEST(Fill, UniformHasTheRightMoments) {
  constexpr std::size_t kCount = 1 << 20;
  std::vector<float> values(kCount);
  fill_uniform(values, 1, 0);
  double sum = 0.0, squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // Five standard errors of each mean.
  EXPECT_NEAR(sum / kCount, 0.5, 5.0 * std::sqrt(1.0 / 12.0 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3.0, 5.0 * std::sqrt(4.0 / 45.0 / kCount));
}

TEST(Fill, NormalHasTheRightMomentsAndTails) {
  constexpr std::size_t kCount = 1 << 20;
  std::vector<float> values(kCount);
  fill_normal(values, 1, 0);
  double sum = 0.0, squares = 0.0, fourths = 0.0, neighbours = 0.0;
  std::size_t beyond_3 = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double x = values[i];
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    if (i > 0) neighbours += x * values[i - 1];
    if (std::abs(x) > 3.0) ++beyond_3;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 5.0 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 5.0 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourths / kCount, 3.0, 5.0 * std::sqrt(96.0 / kCount));
  EXPECT_NEAR(neighbours / kCount, 0.0, 5.0 / std::sqrt(kCount));
  EXPECT_NEAR(static_cast<double>(beyond_3) / kCount, 0.0026998, 5.0 * std::sqrt(0.0027 / kCount));
}

TEST(Random, TakesTheWordsOfTheStreamInOrder) {
  Random random(5, 9);
  for (std::uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(random.next_uint32(), random_block(5, 9, i / 4).words[i % 4]) << i;
}

TEST(Random, ResumesFromAPosition) {
  Random random(5);
  for (int i = 0; i < 7; ++i) random.normal();
  random.uniform();
  const std::uint64_t position = random.position();
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 9; ++i) expected.push_back(random.below(1000));
  for (const std::uint64_t elsewhere : {0, 1, 100}) {
    Random resumed(5);
    for (std::uint64_t i = 0; i < elsewhere; ++i) resumed.next_uint32();
    resumed.seek(position);
    std::vector<std::uint64_t> actual;
    for (int i = 0; i < 9; ++i) actual.push_back(resumed.below(1000));
    EXPECT_EQ(actual, expected);
  }
}

TEST(Random, BelowIsUniform) {
  Random random(11);
  constexpr int kDraws = 70'000;
  std::array<int, 7> counts = {};
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(7)];
  double chi_squared = 0.0;
  for (const int count : counts) {
    const double difference = count - kDraws / 7.0;
    chi_squared += difference * difference / (kDraws / 7.0);
  }
  EXPECT_LT(chi_squared, 30.0);  // 6 degrees of freedom: exceeded once in 25,000 seeds
}

TEST(Random, BelowCoversItsExtremes) {
  Random random(12);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
  // Just above half the range, where taking the remainder alone would favour the lower half.
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 63) + 1;
  int lower = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = random.below(kLarge);
    ASSERT_LT(value, kLarge);
    if (value < kLarge / 2) ++lower;
  }
  EXPECT_NEAR(lower, 500, 80);
  EXPECT_THROW(random.below(0), Error);
}

TEST(Random, DoublesHaveMoreThanAFloatsBits) {
  Random random(13);
  bool finer = false;
  for (int i = 0; i < 100; ++i) {
    const double value = random.uniform_double();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    finer |= static_cast<double>(static_cast<float>(value)) != value;
  }
  EXPECT_TRUE(finer);
}

}  // namespace
}  // namespace filigree

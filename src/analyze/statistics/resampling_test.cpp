// Intervals and p-values against what is known of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analyze_test_support.h"
#include "filigree/statistics.h"

namespace filigree {
namespace {

std::vector<double> normals(std::size_t count, double mean, std::uint64_t seed) {
  Random random(seed, 9);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(mean + static_cast<double>(random.normal()));
  return values;
}

TEST(Resampling, QuantilesAreNumPys) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_EQ(quantile(sorted, 0.0), 1.0);
  EXPECT_EQ(quantile(sorted, 0.5), 3.0);
  EXPECT_NEAR(quantile(sorted, 0.9), 6.8, 1e-12);
  EXPECT_EQ(quantile(sorted, 1.0), 8.0);
}

TEST(Resampling, FewPairsGiveExactPValues) {
  const auto p = [](std::vector<double> differences) {
    return PairedResampler(differences.size(), {}).p_value(differences);
  };
  EXPECT_EQ(p({5}), 1.0);            // both signs are as far
  EXPECT_EQ(p({1, 2, 3}), 2.0 / 8);  // only +++ and ---
  EXPECT_EQ(p({1, -1}), 1.0);
  EXPECT_EQ(p({3, 2, -1}), 4.0 / 8);  // |sum| >= 4: ++-, --+, +++, ---
  EXPECT_EQ(p({0, 0, 0}), 1.0);
  EXPECT_EQ(p(std::vector<double>(12, 0.1)), 2.0 / 4096);
}

TEST(Resampling, TheLeastPIsThatOfDifferencesOfOneSign) {
  for (const std::size_t count : {1, 2, 8, 12, 13, 40}) {
    const PairedResampler resampler(count, {.resamples = 999});
    std::vector<double> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = 1.0 + 0.01 * static_cast<double>(i);
    if (count != 13) {  // 2^-12 of the drawn patterns may be all of one sign
      EXPECT_EQ(resampler.p_value(all), resampler.least_p()) << count;
    }
    EXPECT_GE(resampler.p_value(all), resampler.least_p()) << count;
  }
  EXPECT_EQ(PairedResampler(8, {}).least_p(), 2.0 / 256);
}

TEST(Resampling, ManyPairsGiveTheSamePValuesNearly) {
  // A one-sample t-test of 40 normals is nearly the same test.
  const std::vector<double> differences = normals(40, 0.3, 4);
  double mean = 0.0, squares = 0.0;
  for (const double d : differences) mean += d / 40.0;
  for (const double d : differences) squares += (d - mean) * (d - mean) / 39.0;
  const double z = mean / std::sqrt(squares / 40.0);
  const double expected = std::erfc(std::abs(z) / std::sqrt(2.0));
  const double p = PairedResampler(40, {.resamples = 20000}).p_value(differences);
  EXPECT_NEAR(p, expected, 0.02 + 0.15 * expected);
  // Never 0.
  EXPECT_EQ(PairedResampler(40, {.resamples = 99}).p_value(std::vector<double>(40, 1.0)), 0.01);
}

TEST(Resampling, UnderTheNullPValuesAreUniform) {
  const PairedResampler resampler(20, {.resamples = 400});
  int below_tenth = 0, below_half = 0;
  constexpr int kTrials = 600;
  for (int t = 0; t < kTrials; ++t) {
    const double p = resampler.p_value(normals(20, 0.0, 100 + static_cast<std::uint64_t>(t)));
    below_tenth += p <= 0.1 ? 1 : 0;
    below_half += p <= 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(below_tenth / static_cast<double>(kTrials), 0.1, 0.045);
  EXPECT_NEAR(below_half / static_cast<double>(kTrials), 0.5, 0.075);
}

TEST(Resampling, IntervalsCoverTheTrueMeanAboutAsOftenAsTheySay) {
  const PairedResampler resampler(40, {.resamples = 400});
  int covered = 0;
  constexpr int kTrials = 400;
  for (int t = 0; t < kTrials; ++t) {
    const auto interval =
        resampler.interval(normals(40, 0.7, 5000 + static_cast<std::uint64_t>(t)));
    covered += interval->low <= 0.7 && 0.7 <= interval->high ? 1 : 0;
  }
  EXPECT_GT(covered, kTrials * 0.89);
  EXPECT_LT(covered, kTrials * 0.985);
}

TEST(Resampling, IntervalsHaveTheWidthOfTheNormalOnes) {
  const std::vector<double> values = normals(400, 2.0, 3);
  const auto interval = PairedResampler(400, {}).interval(values);
  const double half = 1.96 / std::sqrt(400.0);
  EXPECT_NEAR(interval->high - interval->low, 2 * half, 0.2 * half);
  const auto narrow = PairedResampler(400, {.confidence = 0.5}).interval(values);
  EXPECT_NEAR((narrow->high - narrow->low) / (interval->high - interval->low), 0.674 / 1.96, 0.05);
}

TEST(Resampling, TheSeedDecidesAlone) {
  const std::vector<double> values = normals(30, 0.1, 3);
  const auto a = PairedResampler(30, {.seed = 5}), b = PairedResampler(30, {.seed = 5}),
             c = PairedResampler(30, {.seed = 6});
  EXPECT_EQ(a.interval(values)->low, b.interval(values)->low);
  EXPECT_EQ(a.p_value(values), b.p_value(values));
  EXPECT_NE(a.interval(values)->low, c.interval(values)->low);
}

TEST(Resampling, RefusesWhatMakesNoSense) {
  using ::testing::HasSubstr;
  EXPECT_FALSE(PairedResampler(1, {}).interval(std::vector<double>{3.0}).has_value());
  EXPECT_THAT(error_of([] { PairedResampler(0, {}); }), HasSubstr("no differences"));
  EXPECT_THAT(error_of([] { PairedResampler(3, {.confidence = 1.0}); }), HasSubstr("between 0"));
  EXPECT_THAT(error_of([] { PairedResampler(3, {}).p_value(std::vector<double>(4)); }),
              HasSubstr("4 differences where 3"));
}

}  // namespace
}  // namespace filigree

#include "analyze/next_token.h"

#include <gtest/gtest.h>

#include <cmath>

namespace filigree {
namespace {

// Logarithms of probabilities, moved by a constant that no prediction may notice.
const std::vector<float> kHalves = {std::log(0.25f) + 80.0f, std::log(0.5f) + 80.0f,
                                    std::log(0.25f) + 80.0f};

TEST(NextToken, ProbabilitiesAreLogitsLessTheirLogSum) {
  const double log_sum = log_sum_of(kHalves);
  EXPECT_NEAR(log_sum, 80.0, 1e-5);
  EXPECT_NEAR(std::exp(static_cast<double>(kHalves[1]) - log_sum), 0.5, 1e-5);
}

TEST(NextToken, EqualOnesAreOrderedById) {
  EXPECT_EQ(likeliest_tokens(kHalves, 9), (std::vector<TokenId>{1, 0, 2}));
  EXPECT_EQ(likeliest_tokens(kHalves, 2), (std::vector<TokenId>{1, 0}));
  EXPECT_EQ(rank_of(kHalves, 1), 0);
  EXPECT_EQ(rank_of(kHalves, 0), 1);
  EXPECT_EQ(rank_of(kHalves, 2), 2);
}

TEST(NextToken, DivergenceOfTwoPredictions) {
  const std::vector<float> even(3, -3.0f);
  EXPECT_NEAR(divergence(kHalves, kHalves), 0.0, 1e-12);
  // log 3 less the entropy, 1.5 log 2.
  EXPECT_NEAR(divergence(kHalves, even), std::log(3.0) - 1.5 * std::log(2.0), 1e-5);
  EXPECT_NEAR(divergence(even, kHalves), (2 * std::log(4.0) + std::log(2.0)) / 3 - std::log(3.0),
              1e-5);
}

}  // namespace
}  // namespace filigree

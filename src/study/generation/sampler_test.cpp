#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "filigree/error.h"
#include "filigree/generation_study.h"

namespace filigree::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How often each token comes out of `draws` choices.
std::map<TokenId, int> counts(const SamplingOptions& options, const std::vector<float>& logits,
                              int draws) {
  Sampler sampler(options, 7);
  std::map<TokenId, int> seen;
  for (int i = 0; i < draws; ++i) ++seen[sampler.choose(logits)];
  return seen;
}

std::string error_of(const std::vector<float>& logits, const SamplingOptions& options = {}) {
  try {
    Sampler(options, 0).choose(logits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sampler, TemperatureZeroTakesTheLargestAndOfEqualsTheFirst) {
  Sampler sampler({.temperature = 0.0}, 0);
  EXPECT_EQ(sampler.choose(std::vector<float>{-1.0f, 3.0f, 2.0f}), 1);
  EXPECT_EQ(sampler.choose(std::vector<float>{2.0f, 5.0f, 5.0f, 5.0f}), 1);
  EXPECT_EQ(sampler.choose(std::vector<float>{-kInfinity, -4.0f}), 1);
}

TEST(Sampler, FollowsTheSoftmax) {
  // Probabilities 0.1, 0.2, 0.7.
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(7.0f)};
  constexpr int kDraws = 20000;
  const auto seen = counts({}, logits, kDraws);
  // Five standard deviations: sqrt(p (1 - p) / n) is at most 0.0033.
  EXPECT_NEAR(seen.at(0) / double{kDraws}, 0.1, 0.017);
  EXPECT_NEAR(seen.at(1) / double{kDraws}, 0.2, 0.017);
  EXPECT_NEAR(seen.at(2) / double{kDraws}, 0.7, 0.017);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  // At temperature 1/2 the odds 1:3 become 1:9, at 2 they become 1:sqrt(3).
  const std::vector<float> logits = {0.0f, std::log(3.0f)};
  constexpr int kDraws = 20000;
  EXPECT_NEAR(counts({.temperature = 0.5}, logits, kDraws).at(0) / double{kDraws}, 0.1, 0.017);
  EXPECT_NEAR(counts({.temperature = 2.0}, logits, kDraws).at(0) / double{kDraws},
              1.0 / (1.0 + std::sqrt(3.0)), 0.017);
}

TEST(Sampler, ATinyTemperatureIsAlmostGreedy) {
  EXPECT_THAT(counts({.temperature = 1e-300}, {1.0f, 1.5f, -3e38f}, 100), ElementsAre(Key(1)));
}

TEST(Sampler, TopKKeepsExactlyKAndRanksEqualsById) {
  EXPECT_THAT(counts({.top_k = 2}, {0.0f, 2.0f, 1.0f, -1.0f}, 500), ElementsAre(Key(1), Key(2)));
  EXPECT_THAT(counts({.top_k = 2}, {1.0f, 1.0f, 1.0f, 1.0f}, 500), ElementsAre(Key(0), Key(1)));
  EXPECT_THAT(counts({.top_k = 1}, {0.0f, 0.5f, 0.5f}, 100), ElementsAre(Key(1)));
  EXPECT_THAT(counts({.top_k = 99}, {0.0f, 0.5f}, 200), ElementsAre(Key(0), Key(1)));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.125, 0.5, 0.25, 0.125: sums by rank 0.5, 0.75, 0.875, 1.
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(2.0f),
                                     std::log(1.0f)};
  EXPECT_THAT(counts({.top_p = 0.01}, logits, 200), ElementsAre(Key(1)));
  EXPECT_THAT(counts({.top_p = 0.49}, logits, 200), ElementsAre(Key(1)));
  EXPECT_THAT(counts({.top_p = 0.7}, logits, 500), ElementsAre(Key(1), Key(2)));
  EXPECT_THAT(counts({.top_p = 0.8}, logits, 500), ElementsAre(Key(0), Key(1), Key(2)));
  EXPECT_THAT(counts({.top_p = 1.0}, logits, 500), ElementsAre(Key(0), Key(1), Key(2), Key(3)));
}

TEST(Sampler, TopPAppliesToWhatTopKLeaves) {
  // Of the two best, 0.5 and 0.25, the first alone has 2/3.
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(2.0f),
                                     std::log(1.0f)};
  EXPECT_THAT(counts({.top_k = 2, .top_p = 0.6}, logits, 300), ElementsAre(Key(1)));
  EXPECT_THAT(counts({.top_k = 2, .top_p = 0.7}, logits, 300), ElementsAre(Key(1), Key(2)));
}

TEST(Sampler, NeverChoosesAnExcludedToken) {
  EXPECT_THAT(counts({}, {-kInfinity, 0.0f, -kInfinity, 1.0f, -kInfinity}, 300),
              ElementsAre(Key(1), Key(3)));
  EXPECT_THAT(counts({.top_p = 0.999}, {-kInfinity, 0.0f, -kInfinity}, 50), ElementsAre(Key(1)));
}

TEST(Sampler, TheSameSeedAndStreamGiveTheSameChoices) {
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](std::uint64_t seed, std::uint64_t stream) {
    Sampler sampler({}, seed, stream);
    std::vector<TokenId> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(sampler.choose(logits));
    return ids;
  };
  EXPECT_EQ(draw(3, 1), draw(3, 1));
  EXPECT_NE(draw(3, 1), draw(3, 2));
  EXPECT_NE(draw(3, 1), draw(4, 1));
}

TEST(Sampler, DamagedLogitsAreAnError) {
  EXPECT_THAT(error_of({0.0f, std::nanf(""), 1.0f}), HasSubstr("token 1 is nan"));
  EXPECT_THAT(error_of({0.0f, 1.0f, kInfinity}), HasSubstr("token 2 is inf"));
  EXPECT_THAT(error_of({0.0f, std::nanf("")}, {.temperature = 0.0}), HasSubstr("token 1 is nan"));
  EXPECT_THAT(error_of({-kInfinity, -kInfinity}), HasSubstr("none of the 2 tokens"));
  EXPECT_THAT(error_of({}), HasSubstr("none of the 0 tokens"));
}

TEST(Sampler, OptionsOutOfRangeAreAnError) {
  EXPECT_THAT(error_of({0.0f}, {.temperature = -1.0}), HasSubstr("temperature -1"));
  EXPECT_THAT(error_of({0.0f}, {.temperature = std::nan("")}), HasSubstr("temperature nan"));
  EXPECT_THAT(error_of({0.0f}, {.top_k = -3}), HasSubstr("top-k -3"));
  EXPECT_THAT(error_of({0.0f}, {.top_p = 0.0}), HasSubstr("top-p 0"));
  EXPECT_THAT(error_of({0.0f}, {.top_p = 1.5}), HasSubstr("top-p 1.5"));
}

}  // namespace
}  // namespace filigree::study

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "filigree/train.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The step at which it speaks up; 0: never within `steps`.
std::int64_t stopped_at(const std::function<double(std::int64_t)>& loss, std::int64_t steps) {
  DivergenceWatch watch;
  for (std::int64_t step = 1; step <= steps; ++step) {
    watch.observe(loss(step));
    if (watch.reason()) return step;
  }
  return 0;
}

TEST(Divergence, ALossThatFallsOrStaysIsNone) {
  EXPECT_EQ(stopped_at([](std::int64_t step) { return 9.0 / static_cast<double>(step); }, 5000), 0);
  EXPECT_EQ(stopped_at([](std::int64_t step) { return 3.0 + (step % 2 == 0 ? 0.9 : 0); }, 5000), 0);
}

TEST(Divergence, ASpikeThatPassesIsNone) {
  const auto spiked = [](std::int64_t step) { return step > 100 && step < 130 ? 7.0 : 3.0; };
  EXPECT_EQ(stopped_at(spiked, 1000), 0);
}

TEST(Divergence, ALossFarAboveItsBestForLongIs) {
  const auto away = [](std::int64_t step) { return step < 100 ? 5.0 : 25.0; };
  // The average passes best + 1 at once: (1 - 0.9) * 20 = 2.
  EXPECT_EQ(stopped_at(away, 1000), 100 + DivergenceWatch::kLong - 1);
  DivergenceWatch watch;
  for (std::int64_t step = 1; step < 200; ++step) watch.observe(away(step));
  EXPECT_THAT(*watch.reason(), AllOf(HasSubstr("best (5 at step 1)"), HasSubstr("learning rate")));
}

TEST(Divergence, AStoredWatchGoesOnAsIfNothingHadHappened) {
  DivergenceWatch whole, resumed;
  for (int step = 0; step < 80; ++step) {
    const double loss = step < 20 ? 4.0 - 0.1 * step : 6.0;
    whole.observe(loss);
    resumed.observe(loss);
    DivergenceWatch next;
    next.restore(nlohmann::json::parse(resumed.state().dump()));
    resumed = next;
    EXPECT_EQ(whole.reason(), resumed.reason()) << step;
  }
  EXPECT_TRUE(whole.reason());
}

}  // namespace
}  // namespace filigree

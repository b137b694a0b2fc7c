#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "filigree/layers.h"

namespace filigree {
namespace {

TEST(RotaryTable, HoldsTheCosinesAndSinesOfEveryPosition) {
  const std::vector<double> steps = rotary_steps(8, 100.0);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0], 1.0);
  EXPECT_NEAR(steps[1], 1.0 / std::sqrt(10.0), 1e-15);
  EXPECT_NEAR(steps[3], std::pow(100.0, -0.75), 1e-15);
  const RotaryTable table(steps);
  const RotaryTable::Part part = table.at(3, 400, DeviceKind::kCpu);
  ASSERT_EQ(part.cos.shape(), Shape({400, 4}));
  for (const std::int64_t row : {0, 1, 17, 399})
    for (std::int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(row + 3) * steps[static_cast<std::size_t>(i)];
      EXPECT_EQ(part.cos.f32()[row * 4 + i], static_cast<float>(std::cos(angle)));
      EXPECT_EQ(part.sin.f32()[row * 4 + i], static_cast<float>(std::sin(angle)));
    }
}

TEST(RotaryTable, GrowsWithoutChangingWhatItGave) {
  const RotaryTable table(rotary_steps(8, 10000.0));
  const Tensor before = table.at(0, 4, DeviceKind::kCpu).cos;
  const Tensor copy = before.clone();
  const Tensor after = table.at(0, 5000, DeviceKind::kCpu).cos;
  EXPECT_TRUE(std::ranges::equal(before.values(), copy.values()));
  EXPECT_TRUE(std::ranges::equal(before.values(), after.rows(0, 4).values()));
}

TEST(RotaryTable, SeveralThreadsMayAskAtOnce) {
  const RotaryTable whole(rotary_steps(16, 10000.0)), shared(rotary_steps(16, 10000.0));
  const Tensor wanted = whole.at(0, 4096, DeviceKind::kCpu).sin;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t count = 1; count < 2000; count = count * 3 + t) {
        const Tensor sin = shared.at(t, count, DeviceKind::kCpu).sin;
        if (!std::ranges::equal(sin.values(), wanted.rows(t, t + count).values())) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace filigree

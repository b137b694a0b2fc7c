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
  const RotaryTable table(8, 100.0);
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
  const RotaryTable table(8, 10000.0);
  const Tensor before = table.at(0, 4, DeviceKind::kCpu).cos;
  const Tensor copy = before.clone();
  const Tensor after = table.at(0, 5000, DeviceKind::kCpu).cos;
  EXPECT_TRUE(std::ranges::equal(before.values(), copy.values()));
  EXPECT_TRUE(std::ranges::equal(before.values(), after.rows(0, 4).values()));
}

TEST(RotaryTable, SeveralThreadsMayAskAtOnce) {
  const RotaryTable whole(16, 10000.0), shared(16, 10000.0);
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

TEST(RotaryTable, AnglesThatGoByTheLengthOfARunChangeBeyondTheOriginalContext) {
  const RotaryScaling scaling = {
      .kind = RotaryScaling::Kind::kDynamic, .factor = 2.0, .original_context = 6.0};
  const RotaryTable table(8, 100.0, scaling), plain(8, 100.0);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.values(), b.values());
  };
  const auto cos = [](const RotaryTable& of, std::int64_t first, std::int64_t count,
                      std::int64_t length) {
    return of.at(first, count, DeviceKind::kCpu, length).cos;
  };
  EXPECT_TRUE(same(cos(table, 0, 6, -1), cos(plain, 0, 6, -1)));
  EXPECT_FALSE(same(cos(table, 0, 7, -1), cos(plain, 0, 7, -1)));
  // Part of a run, and a run of another length, behind each other.
  EXPECT_TRUE(same(cos(table, 5, 2, 7), cos(table, 0, 7, 7).rows(5, 7)));
  EXPECT_FALSE(same(cos(table, 5, 2, 8), cos(table, 5, 2, 7)));
  EXPECT_TRUE(same(cos(table, 2, 2, 5), cos(plain, 2, 2, 5)));
  const double base = 100.0 * std::pow(2.0 * 8.0 / 6.0 - 1.0, 8.0 / 6.0);
  EXPECT_NEAR(static_cast<double>(cos(table, 3, 1, 8).f32()[1]),
              std::cos(3.0 * std::pow(base, -0.25)), 1e-6);
}

TEST(RotaryTable, AmplitudesScaleCosinesAndSines) {
  const RotaryTable table(4, 100.0, {.amplitude = 1.5});
  const RotaryTable::Part part = table.at(0, 2, DeviceKind::kCpu);
  EXPECT_EQ(part.cos.f32()[0], 1.5f);
  EXPECT_EQ(part.sin.f32()[0], 0.0f);
  EXPECT_EQ(part.sin.f32()[2], static_cast<float>(1.5 * std::sin(1.0)));
}

}  // namespace
}  // namespace filigree

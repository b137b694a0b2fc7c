#include "text/shard_permutation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "text/text_test_support.h"

namespace filigree {
namespace {

TEST(IndexPermutation, TakesEveryNumberOnce) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    const IndexPermutation order(size, 7, size);
    std::vector<bool> taken(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(order(i), size);
      EXPECT_FALSE(taken[order(i)]) << size << " " << i;
      taken[order(i)] = true;
    }
  }
}

TEST(IndexPermutation, TakesEveryNumberOfManyOnce) {
  constexpr std::uint64_t kSize = 100003;
  const IndexPermutation order(kSize, 1, 2);
  std::vector<bool> taken(kSize);
  for (std::uint64_t i = 0; i < kSize; ++i) taken[order(i)] = true;
  EXPECT_EQ(std::count(taken.begin(), taken.end(), true), static_cast<std::ptrdiff_t>(kSize));
}

TEST(IndexPermutation, IsAnotherForEverySeedAndStream) {
  const IndexPermutation a(1000, 1, 1);
  const IndexPermutation b(1000, 2, 1);
  const IndexPermutation c(1000, 1, 2);
  int equal_b = 0;
  int equal_c = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    equal_b += a(i) == b(i) ? 1 : 0;
    equal_c += a(i) == c(i) ? 1 : 0;
  }
  // One place in a thousand agrees by chance; 12 of them would be a wonder.
  EXPECT_LT(equal_b, 12);
  EXPECT_LT(equal_c, 12);
}

TEST(IndexPermutation, LeavesNoTraceOfTheOrder) {
  // The correlation of place and number is about 0 with a standard deviation of 1 / sqrt(n).
  constexpr std::uint64_t kSize = 10000;
  const IndexPermutation order(kSize, 3, 4);
  double sum = 0;
  for (std::uint64_t i = 0; i < kSize; ++i)
    sum += (static_cast<double>(i) - 4999.5) * (static_cast<double>(order(i)) - 4999.5);
  const double variance = (1e8 - 1) / 12;
  EXPECT_LT(std::abs(sum / (variance * kSize)), 0.05);
}

TEST(IndexPermutation, WorksForHugeSizes) {
  const IndexPermutation order(UINT64_MAX, 1, 1);
  EXPECT_NE(order(0), order(1));
  EXPECT_ERROR(IndexPermutation(0, 1, 1), "nothing to put in order");
  EXPECT_ERROR(IndexPermutation(5, 1, 1)(5), "beyond its 5");
}

}  // namespace
}  // namespace filigree

#include "dist/communicator.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace filigree {
namespace {

TEST(Communicator, AJobOfOneKeepsItsValues) {
  const std::unique_ptr<Communicator> one = make_single_process();
  EXPECT_EQ(one->rank(), 0);
  EXPECT_EQ(one->size(), 1);
  std::array<float, 2> values = {1.5f, -2.0f};
  one->sum(std::span<float>(values));
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(one->gather("text"), std::vector<std::string>{"text"});
}

TEST(Communicator, PartsCoverEverythingOnce) {
  for (const std::int64_t count : {0, 1, 7, 144, 32491})
    for (const int size : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const RankPart part = part_of_rank(count, rank, size);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.end - part.begin, count / size + 1);
        next = part.end;
      }
      EXPECT_EQ(next, count);
    }
  EXPECT_THROW(part_of_rank(3, 2, 2), Error);
}

}  // namespace
}  // namespace filigree

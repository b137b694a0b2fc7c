#include <gtest/gtest.h>

#include "filigree/model.h"

namespace filigree {
namespace {

// Two layers of three heads, over ten queries.
LivingHeads of(const std::vector<double>& open) {
  return living_heads(std::vector<HeadId>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}, open,
                      10);
}

TEST(LivingHeads, AreThoseThatOpenAnEdge) {
  const LivingHeads found = of({0, 20, 0, 5, 0, 75});
  EXPECT_EQ(found.heads, 6);
  EXPECT_EQ(found.queries, 10);
  ASSERT_EQ(found.living.size(), 3u);
  EXPECT_TRUE(found.lives({0, 1}));
  EXPECT_TRUE(found.lives({1, 0}));
  EXPECT_FALSE(found.lives({0, 0}));
  EXPECT_DOUBLE_EQ(found.living[0].keys_per_query, 2.0);
  EXPECT_DOUBLE_EQ(found.living[0].edges_share, 0.2);
  EXPECT_DOUBLE_EQ(*found.median_keys(), 2.0);
  EXPECT_EQ(found.widest()->head, (HeadId{1, 2}));
  EXPECT_DOUBLE_EQ(found.widest()->keys_per_query, 7.5);
  EXPECT_DOUBLE_EQ(found.share_of_widest(2), 0.95);
  EXPECT_DOUBLE_EQ(found.share_of_widest(5), 1.0);
  // Of an even number the median is between the two in the middle.
  EXPECT_DOUBLE_EQ(*of({10, 20, 0, 0, 0, 0}).median_keys(), 1.5);
}

TEST(LivingHeads, OfAModelWhoseGatesAreAllClosedAreNone) {
  const LivingHeads found = of({0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(found.living.empty());
  EXPECT_FALSE(found.median_keys().has_value());
  EXPECT_FALSE(found.widest().has_value());
  EXPECT_DOUBLE_EQ(found.share_of_widest(5), 0.0);
}

}  // namespace
}  // namespace filigree

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analyze_test_support.h"
#include "analyze/constructed_maps_test_support.h"
#include "filigree/statistics.h"

namespace filigree {
namespace {

using analyze_test::column_keys;
using analyze_test::ConstructedMap;
using analyze_test::dense_map;
using analyze_test::offset_keys;
using analyze_test::sparse_map;

double value(const ConstructedMap& map, Statistic statistic, std::span<const float> gate = {}) {
  return map_statistics(map.weights, gate, map.length).all[static_cast<std::size_t>(statistic)];
}

// Over the rows that attend; not a number without one.
double attending(const ConstructedMap& map, Statistic statistic, std::span<const float> gate = {}) {
  const MapStatistics found = map_statistics(map.weights, gate, map.length);
  const auto s = static_cast<std::size_t>(statistic);
  return found.attending_sum[s] / found.attending_weight[s];
}

// 4 tokens; row 2 is empty, row 3 has half its mass.
ConstructedMap by_hand() {
  ConstructedMap map(4);
  map.at(0, 0) = 1.0f;
  map.at(1, 0) = 0.25f, map.at(1, 1) = 0.75f;
  map.at(3, 0) = 0.125f, map.at(3, 1) = 0.125f, map.at(3, 3) = 0.25f;
  return map;
}

TEST(MapStatistics, EqualsAComputationByHand) {
  const ConstructedMap map = by_hand();
  std::vector<float> gate;
  for (const float w : map.weights) gate.push_back(w > 0.0f ? 1.0f : 0.0f);
  gate[2 * 4 + 1] = 1.0f;  // open, though its weight has vanished
  EXPECT_NEAR(value(map, Statistic::kPeak), (0.75 + 0.0 + 0.25) / 3.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kRowMass), (1.0 + 0.0 + 0.5) / 3.0, 1e-6);
  const double first = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75));
  const double last = -(2 * 0.25 * std::log(0.25) + 0.5 * std::log(0.5));
  EXPECT_NEAR(value(map, Statistic::kEntropy), (first + last) / 2.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kSinkMass), (0.25 + 0.125) / 3.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kEmptyRows), 1.0 / 3.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kActiveEdges, gate), 7.0 / 10.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kKeysPerQuery, gate), 7.0 / 4.0, 1e-6);
  EXPECT_EQ(value(map, Statistic::kActiveEdges), 1.0);  // no gates: every edge
  EXPECT_EQ(value(map, Statistic::kKeysPerQuery), 2.5);
  EXPECT_EQ(value(map, Statistic::kDiagonalDominance), 1.0);
}

TEST(MapStatistics, OverRowsThatAttendEqualsAComputationByHand) {
  const ConstructedMap map = by_hand();
  std::vector<float> gate;
  for (const float w : map.weights) gate.push_back(w > 0.0f ? 1.0f : 0.0f);
  gate[2 * 4 + 1] = 1.0f;  // of a row without mass
  EXPECT_NEAR(attending(map, Statistic::kPeak), (0.75 + 0.25) / 2.0, 1e-6);
  EXPECT_NEAR(attending(map, Statistic::kRowMass), (1.0 + 0.5) / 2.0, 1e-6);
  EXPECT_NEAR(attending(map, Statistic::kSinkMass), (0.25 + 0.125) / 2.0, 1e-6);
  EXPECT_EQ(attending(map, Statistic::kEmptyRows), 0.0);
  // Rows 0, 1 and 3 with 1 + 2 + 4 edges, of which 1 + 2 + 3 are open.
  EXPECT_NEAR(attending(map, Statistic::kActiveEdges, gate), 6.0 / 7.0, 1e-6);
  EXPECT_NEAR(attending(map, Statistic::kKeysPerQuery, gate), 6.0 / 3.0, 1e-6);
}

TEST(MapStatistics, FiguresOfTheFieldEqualAComputationByHand) {
  ConstructedMap map = by_hand();
  EXPECT_NEAR(value(map, Statistic::kDiagonalWeight), (0.75 + 0.0 + 0.25) / 3.0, 1e-6);
  EXPECT_NEAR(value(map, Statistic::kPreviousWeight), 0.25 / 3.0, 1e-6);
  EXPECT_NEAR(attending(map, Statistic::kPreviousWeight), 0.25 / 2.0, 1e-6);
  EXPECT_EQ(value(map, Statistic::kStrongOffDiagonal), 0.0);
  EXPECT_EQ(value(map, Statistic::kDiscretisation), 0.0);
  // (1, 0), (3, 0) and (3, 1); the diagonal is no connection.
  EXPECT_NEAR(value(map, Statistic::kDirectConnections), 3.0 / 3.0, 1e-6);
  EXPECT_EQ(map_statistics(map.weights, {}, 4).connections,
            (std::vector<std::uint32_t>{4, 12, 13}));
  map.at(2, 1) = 0.95f;
  EXPECT_EQ(value(map, Statistic::kStrongOffDiagonal), 1.0);
  EXPECT_NEAR(value(map, Statistic::kDiscretisation), 0.95 / (1.0 + 0.95 + 0.5), 1e-6);
  // Row 0 has no choice: its 1 on the diagonal is no discretisation.
  EXPECT_TRUE(std::isnan(value(map, Statistic::kReadsHeadsQ)));
}

TEST(MapStatistics, DiagonalDominanceComparesOffsets) {
  EXPECT_EQ(value(dense_map(40, offset_keys(0), 0.6), Statistic::kDiagonalDominance), 1.0);
  EXPECT_EQ(value(sparse_map(40, offset_keys(0)), Statistic::kDiagonalDominance), 1.0);
  EXPECT_EQ(value(dense_map(40, offset_keys(1), 0.6), Statistic::kDiagonalDominance), 0.0);
  EXPECT_EQ(value(dense_map(40, column_keys({0}), 0.9), Statistic::kDiagonalDominance), 0.0);
}

TEST(MapStatistics, OfEvenRowsTheEntropyIsTheLogarithmOfTheKeys) {
  ConstructedMap map(9);
  double expected = 0.0;
  for (std::int64_t i = 0; i < 9; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) map.at(i, j) = 0.3f / static_cast<float>(i + 1);
    if (i > 0) expected += std::log(static_cast<double>(i + 1)) / 8.0;
  }
  EXPECT_NEAR(value(map, Statistic::kEntropy), expected, 1e-5);
  EXPECT_NEAR(value(map, Statistic::kRowMass), 0.3, 1e-6);
}

TEST(MapStatistics, NothingAndOneTokenAreDefined) {
  const ConstructedMap nothing(5);
  const std::vector<float> closed(25, 0.0f);
  const MapStatistics values = map_statistics(nothing.weights, closed, 5);
  for (std::size_t s = 0; s < kStatistics; ++s) EXPECT_EQ(values.attending_weight[s], 0.0);
  for (std::size_t s = 0; s < static_cast<std::size_t>(Statistic::kReadsHeadsQ); ++s)
    EXPECT_EQ(values.all[s], static_cast<Statistic>(s) == Statistic::kEmptyRows ? 1.0 : 0.0)
        << name_of(static_cast<Statistic>(s));
  ConstructedMap one(1);
  one.at(0, 0) = 1.0f;
  EXPECT_EQ(value(one, Statistic::kPeak), 1.0);
  EXPECT_EQ(value(one, Statistic::kEntropy), 0.0);
  EXPECT_EQ(value(one, Statistic::kKeysPerQuery), 1.0);
  EXPECT_EQ(value(one, Statistic::kDiagonalDominance), 0.0);  // nothing to compare with
  EXPECT_THAT(error_of([&] { map_statistics(one.weights, closed, 1); }),
              ::testing::HasSubstr("25 gates"));
}

}  // namespace
}  // namespace filigree

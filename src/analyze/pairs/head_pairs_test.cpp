// Correlations of heads against plain computations, within bounds on memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/analyze_test_support.h"
#include "filigree/maps.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

using analyze_test::random_prompt;
using analyze_test::small_model;
using ::testing::HasSubstr;

double plain_pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i)
    xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx),
        yy += (y[i] - my) * (y[i] - my);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0.0;
}

// Ranks by counting: those below, and half of those that are equal.
std::vector<double> plain_ranks(const std::vector<double>& x) {
  std::vector<double> ranks;
  for (const double a : x) {
    double below = 0, equal = 0;
    for (const double b : x) below += b < a, equal += b == a;
    ranks.push_back(below + (equal + 1) / 2);
  }
  return ranks;
}

// Every causal cell of every prompt, by head.
std::vector<std::vector<double>> all_cells(const Model& model, const std::vector<Prompt>& prompts,
                                           const std::vector<HeadId>& heads) {
  std::vector<std::vector<double>> cells(heads.size());
  capture_maps(
      model, prompts, CaptureOptions::of(heads, MapKind::kWeights),
      [&](std::span<const HeadMap> maps) {
        for (const HeadMap& map : maps)
          for (std::int64_t i = 0; i < map.length; ++i)
            for (std::int64_t j = 0; j <= i; ++j)
              cells[map.slot].push_back(map.weights[static_cast<std::size_t>(i * map.length + j)]);
      });
  return cells;
}

HeadPairs pairs_of(const Model& model, const std::vector<Prompt>& prompts,
                   const std::vector<HeadId>& heads, const HeadPairOptions& options = {}) {
  HeadPairAccumulator pairs(heads, options);
  capture_maps(model, prompts, CaptureOptions::of(heads, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) { pairs.add(maps); });
  return pairs.finish();
}

TEST(HeadPairs, EqualPlainCorrelationsOverAllCells) {
  for (const bool gated : {false, true}) {
    const auto model = small_model(gated);
    const std::vector<Prompt> prompts = {random_prompt(20, 1), random_prompt(1, 2),
                                         random_prompt(33, 3)};
    const std::vector<HeadId> heads = all_heads(3, 4);
    const auto cells = all_cells(*model, prompts, heads);
    const HeadPairs pairs = pairs_of(*model, prompts, heads);
    EXPECT_EQ(pairs.cells, 210 + 1 + 561);
    EXPECT_EQ(pairs.cells_used, pairs.cells);
    EXPECT_EQ(pairs.points.size(), static_cast<std::size_t>(pairs.cells));
    EXPECT_TRUE(pairs.constant.empty());
    std::vector<std::vector<double>> ranks;
    for (const auto& x : cells) ranks.push_back(plain_ranks(x));
    for (std::size_t a = 0; a < heads.size(); ++a)
      for (std::size_t b = 0; b < heads.size(); ++b) {
        EXPECT_NEAR(pairs.pearson[a * 12 + b], plain_pearson(cells[a], cells[b]), 1e-5);
        EXPECT_NEAR(pairs.spearman[a * 12 + b], plain_pearson(ranks[a], ranks[b]), 1e-5);
      }
  }
}

TEST(HeadPairs, SamplesComeNearWhereNotAllCellsFit) {
  const auto model = small_model(true);
  std::vector<Prompt> prompts;
  for (std::uint64_t p = 0; p < 12; ++p) prompts.push_back(random_prompt(p % 2 == 0 ? 64 : 30, p));
  const std::vector<HeadId> heads = all_heads(3, 4);
  const HeadPairs exact = pairs_of(*model, prompts, heads);
  // A long prompt's 2,080 cells do not fit 1,000; a short one's 465 do.
  const HeadPairOptions bounded = {.budget_bytes = 1000 * 12 * 4, .sample_cells = 4000, .seed = 3};
  const HeadPairs sampled = pairs_of(*model, prompts, heads, bounded);
  EXPECT_EQ(sampled.cells, 6 * (2080 + 465));
  EXPECT_EQ(sampled.cells_used, 6 * (1000 + 465));
  EXPECT_EQ(sampled.points.size(), 4000u);
  const double pearson_error = 1.0 / std::sqrt(6 * 1465.0),
               spearman_error = 1.0 / std::sqrt(4000.0);
  for (std::size_t c = 0; c < 144; ++c) {
    EXPECT_NEAR(sampled.pearson[c], exact.pearson[c], 5 * pearson_error);
    EXPECT_NEAR(sampled.spearman[c], exact.spearman[c], 4 * spearman_error);
  }
  const HeadPairs again = pairs_of(*model, prompts, heads, bounded);
  EXPECT_EQ(again.pearson, sampled.pearson);
  EXPECT_EQ(again.spearman, sampled.spearman);
}

TEST(HeadPairs, PointsAreCellsOfTheMaps) {
  const auto model = small_model(true);
  const std::vector<Prompt> prompts = {random_prompt(30, 1), random_prompt(40, 2),
                                       random_prompt(25, 3)};
  const std::vector<HeadId> heads = parse_heads("L0H1,L2H2,L2H3", 3, 4);
  const HeadPairs pairs = pairs_of(*model, prompts, heads, {.sample_cells = 300, .seed = 1});
  ASSERT_EQ(pairs.points.size(), 300u);
  std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>> different;
  std::size_t in_second = 0;
  capture_maps(*model, prompts, CaptureOptions::of(heads, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& map : maps)
                   for (std::size_t p = 0; p < 300; ++p) {
                     const ScatterPoint& point = pairs.points[p];
                     if (point.prompt != map.prompt) continue;
                     different.emplace(point.prompt, point.cell.query, point.cell.key);
                     if (point.prompt == 1 && map.slot == 0) ++in_second;
                     EXPECT_EQ(pairs.weights_of(map.slot)[p],
                               map.weights[static_cast<std::size_t>(point.cell.query * map.length +
                                                                    point.cell.key)]);
                   }
               });
  EXPECT_EQ(different.size(), 300u);
  // Of 465 + 820 + 325 cells.
  EXPECT_NEAR(static_cast<double>(in_second), 300.0 * 820 / 1610, 40.0);
  const std::vector<std::size_t> chosen = pairs.choose_points(50, 7);
  EXPECT_EQ(std::set<std::size_t>(chosen.begin(), chosen.end()).size(), 50u);
  EXPECT_EQ(chosen, pairs.choose_points(50, 7));
  EXPECT_NE(chosen, pairs.choose_points(50, 8));
  EXPECT_EQ(pairs.choose_points(1000, 7).size(), 300u);
}

TEST(HeadPairs, HeadsThatDoNotVaryCorrelateWithNothing) {
  auto model = small_model(true);
  std::vector<float> biases(12, 0.25f);
  biases[5] = -1000.0f;  // L1H1 is always empty
  model->set_gate({biases});
  const HeadPairs pairs = pairs_of(*model, {random_prompt(20)}, all_heads(3, 4));
  EXPECT_EQ(pairs.constant, std::vector<std::size_t>{5});
  for (std::size_t b = 0; b < 12; ++b) {
    EXPECT_EQ(pairs.pearson[5 * 12 + b], b == 5 ? 1.0 : 0.0);
    EXPECT_EQ(pairs.spearman[b * 12 + 5], b == 5 ? 1.0 : 0.0);
  }
}

TEST(HeadPairs, MemoryIsBoundedWhateverTheTokens) {
  const auto model = small_model(true, 3, 4, 256);
  const auto peak = [&](std::size_t prompts) {
    std::vector<Prompt> list;
    for (std::size_t p = 0; p < prompts; ++p) list.push_back(random_prompt(256, p));
    const std::uint64_t before = pool_statistics().bytes_in_use;
    reset_pool_peak();
    const HeadPairs pairs = pairs_of(*model, list, all_heads(3, 4), {.budget_bytes = 1 << 20});
    EXPECT_EQ(pairs.cells, static_cast<std::int64_t>(prompts) * 256 * 257 / 2);
    EXPECT_LE(pairs.points.size(), 32768u);
    return pool_statistics().peak_bytes_in_use - before;
  };
  const std::uint64_t one = peak(1);
  EXPECT_LE(peak(8), one + (1 << 16));
}

TEST(HeadPairs, RefusesPromptsThatCameTogether) {
  const auto model = small_model();
  const std::vector<Prompt> prompts = {random_prompt(5, 1), random_prompt(5, 2)};
  CaptureOptions options = CaptureOptions::of(all_heads(3, 4), MapKind::kWeights);
  options.batch_tokens = 100;
  EXPECT_THAT(error_of([&] {
                HeadPairAccumulator pairs(options.heads);
                capture_maps(*model, prompts, options,
                             [&](std::span<const HeadMap> maps) { pairs.add(maps); });
              }),
              HasSubstr("capture them one by one"));
  EXPECT_THAT(error_of([] { HeadPairAccumulator({{0, 0}}).finish(); }), HasSubstr("no prompts"));
}

TEST(CellSampling, NumbersGoThroughTheTriangle) {
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < 60; ++i)
    for (std::int64_t j = 0; j <= i; ++j) EXPECT_EQ(cell_at(number++), (Cell{i, j}));
  EXPECT_EQ(cell_at(causal_cells(100000) - 1), (Cell{99999, 99999}));
  EXPECT_EQ(cell_at(causal_cells(100000)), (Cell{100000, 0}));
  EXPECT_EQ(stratified_cells(10, 55, 1, 1).size(), 55u);
  const std::vector<Cell> some = stratified_cells(100, 500, 1, 1);
  ASSERT_EQ(some.size(), 500u);
  for (std::size_t s = 0; s < 500; ++s) {
    const std::int64_t at = causal_cells(some[s].query) + some[s].key;
    EXPECT_GE(at, 5050 * static_cast<std::int64_t>(s) / 500);
    EXPECT_LT(at, 5050 * static_cast<std::int64_t>(s + 1) / 500);
  }
}

TEST(CellSampling, AReservoirKeepsEveryCellEquallyOften) {
  // Four maps of 10 cells each, room for 8: each of the 40 cells is kept one time in five.
  constexpr int kTrials = 4000;
  std::map<std::int64_t, int> kept;
  for (int t = 0; t < kTrials; ++t) {
    CellReservoir reservoir(8, static_cast<std::uint64_t>(t));
    std::vector<std::int64_t> places(8, -1);
    for (std::int64_t map = 0; map < 4; ++map)
      for (const CellReservoir::Kept& one : reservoir.take(4))
        places.at(one.place) = map * 10 + causal_cells(one.cell.query) + one.cell.key;
    EXPECT_EQ(reservoir.filled(), 8u);
    EXPECT_EQ(std::set<std::int64_t>(places.begin(), places.end()).size(), 8u);
    for (const std::int64_t cell : places) ++kept[cell];
  }
  ASSERT_EQ(kept.size(), 40u);
  EXPECT_EQ(kept.begin()->first, 0);
  for (const auto& [cell, count] : kept)  // 800 with a deviation of 25
    EXPECT_NEAR(count, kTrials / 5, 125) << cell;
}

TEST(Correlation, RanksShareTies) {
  EXPECT_EQ(ranks_of(std::vector<float>{3, 1, 1, 2}), (std::vector<float>{4, 1.5f, 1.5f, 3}));
  EXPECT_EQ(ranks_of(std::vector<float>{0, 0, 0}), (std::vector<float>{2, 2, 2}));
  EXPECT_TRUE(ranks_of({}).empty());
}

TEST(Clustering, PutsLikeBesideLike) {
  // Two families, {0, 3, 5} and {1, 2, 4}, and 6 alone.
  constexpr std::size_t n = 7;
  std::vector<double> r(n * n, 0.0);
  const std::vector<int> family = {0, 1, 1, 0, 1, 0, 2};
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b)
      r[a * n + b] = a == b                       ? 1.0
                     : family[a] == family[b]     ? 0.8
                     : family[a] + family[b] == 1 ? 0.1
                                                  : -0.5;
  r[0 * n + 5] = r[5 * n + 0] = 0.9;
  const Clustering clustering = cluster(r, n);
  ASSERT_EQ(clustering.merges.size(), n - 1);
  EXPECT_EQ(clustering.merges[0].first, 0u);
  EXPECT_EQ(clustering.merges[0].second, 5u);
  EXPECT_NEAR(clustering.merges[0].distance, 0.1, 1e-12);
  EXPECT_NEAR(clustering.merges.back().distance, 1.5, 1e-12);
  for (std::size_t m = 1; m + 1 < n; ++m)
    EXPECT_GE(clustering.merges[m].distance, clustering.merges[m - 1].distance);
  std::vector<std::size_t> sorted = clustering.order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
  int changes = 0;
  for (std::size_t i = 1; i < n; ++i)
    changes += family[clustering.order[i]] != family[clustering.order[i - 1]] ? 1 : 0;
  EXPECT_EQ(changes, 2);
}

// Average linkage by its definition, all pairs of all clusters anew at every step.
TEST(Clustering, EqualsThePlainAlgorithm) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    constexpr std::size_t n = 23;
    Random random(seed);
    std::vector<double> r(n * n, 1.0);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < a; ++b)
        r[a * n + b] = r[b * n + a] = 2 * random.uniform_double() - 1;
    std::vector<std::vector<std::size_t>> clusters(n);
    for (std::size_t a = 0; a < n; ++a) clusters[a] = {a};
    const Clustering clustering = cluster(r, n);
    for (std::size_t m = 0; m + 1 < n; ++m) {
      double best = 1e9;
      std::size_t first = 0, second = 0;
      for (std::size_t a = 0; a < clusters.size(); ++a)
        for (std::size_t b = a + 1; b < clusters.size(); ++b) {
          double sum = 0;
          for (const std::size_t x : clusters[a])
            for (const std::size_t y : clusters[b]) sum += 1.0 - r[x * n + y];
          const double mean = sum / static_cast<double>(clusters[a].size() * clusters[b].size());
          if (mean < best) best = mean, first = a, second = b;
        }
      EXPECT_NEAR(clustering.merges[m].distance, best, 1e-9);
      clusters[first].insert(clusters[first].end(), clusters[second].begin(),
                             clusters[second].end());
      clusters.erase(clusters.begin() + static_cast<std::ptrdiff_t>(second));
    }
  }
  EXPECT_TRUE(cluster({}, 0).order.empty());
  EXPECT_EQ(cluster(std::vector<double>{1.0}, 1).order, std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace filigree

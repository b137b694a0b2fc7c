#include <algorithm>
#include <numeric>
#include <set>

#include "filigree/data.h"
#include "filigree/runtime.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

// `count` different tokens, 0, 1, 2, ..., in shards of 37.
TokenSplit counting_split(TokenId count) {
  const std::filesystem::path folder = fresh_folder();
  TokenShardsWriter writer(folder,
                           {.vocabulary = static_cast<std::uint64_t>(count), .shard_tokens = 37});
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  writer.add_tokens(0, ids);
  writer.finish();
  return TokenShards::open(folder).split("train");
}

std::vector<std::int32_t> values(const Tensor& tensor) {
  return {tensor.i32(), tensor.i32() + tensor.elements()};
}

// The first input of each row.
std::vector<std::int32_t> starts(const TokenBatch& batch) {
  std::vector<std::int32_t> all;
  for (std::int64_t row = 0; row < batch.ids.size(0); ++row)
    all.push_back(batch.ids.i32()[row * batch.ids.size(1)]);
  return all;
}

void expect_windows(const TokenBatch& batch, std::int64_t rows, std::int64_t length) {
  ASSERT_EQ(batch.ids.shape(), (Shape{rows, length}));
  ASSERT_EQ(batch.targets.shape(), (Shape{rows, length}));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < length; ++i) {
      EXPECT_EQ(batch.ids.i32()[row * length + i], batch.ids.i32()[row * length] + i);
      EXPECT_EQ(batch.targets.i32()[row * length + i], batch.ids.i32()[row * length + i] + 1);
    }
}

TEST(ShardLoader, TakesEveryWindowOfAnEpochOnce) {
  const TokenSplit split = counting_split(1000);
  ShardLoader loader(split, {.batch = 1, .length = 8, .seed = 5});
  std::set<std::int32_t> offsets;
  std::vector<std::vector<std::int32_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(loader.state(), (LoaderState{epoch, 0}));
    std::vector<std::int32_t> order;
    for (std::uint64_t i = loader.windows(epoch); i > 0; --i) {
      const TokenBatch batch = loader.next();
      expect_windows(batch, 1, 8);
      order.push_back(starts(batch)[0]);
    }
    std::vector<std::int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_LT(sorted[0], 8);
    EXPECT_GE(sorted.back() + 8 + 8, 1000 - 1);  // no further window would fit
    for (std::size_t i = 0; i < sorted.size(); ++i)
      EXPECT_EQ(sorted[i], sorted[0] + 8 * static_cast<std::int32_t>(i));
    EXPECT_NE(order, sorted);
    offsets.insert(sorted[0]);
    orders.push_back(order);
  }
  EXPECT_GT(offsets.size(), 1u);
  EXPECT_NE(orders[0], orders[1]);
}

TEST(ShardLoader, RunsAcrossTheEndOfAnEpoch) {
  const TokenSplit split = counting_split(100);
  ShardLoader one(split, {.batch = 1, .length = 8, .seed = 1});
  ShardLoader seven(split, {.batch = 7, .length = 8, .seed = 1});
  for (int i = 0; i < 30; ++i) {
    std::vector<std::int32_t> singles;
    for (int row = 0; row < 7; ++row) singles.push_back(starts(one.next())[0]);
    const TokenBatch batch = seven.next();
    expect_windows(batch, 7, 8);
    EXPECT_EQ(starts(batch), singles);
    EXPECT_EQ(seven.state(), one.state());
  }
  EXPECT_GT(one.state().epoch, 10u);
}

TEST(ShardLoader, ContinuesExactly) {
  const TokenSplit split = counting_split(500);
  const LoaderOptions options{.batch = 5, .length = 7, .seed = 9};
  ShardLoader uninterrupted(split, options);
  LoaderState state;
  for (int i = 0; i < 60; ++i) {
    // A loader of its own for every batch, as if the process had been killed each time.
    ShardLoader resumed(split, options, state);
    const TokenBatch batch = resumed.next();
    state = resumed.state();
    const TokenBatch expected = uninterrupted.next();
    EXPECT_EQ(values(batch.ids), values(expected.ids)) << i;
    EXPECT_EQ(values(batch.targets), values(expected.targets));
    EXPECT_EQ(state, uninterrupted.state());
  }
  EXPECT_GE(state.epoch, 4u);
  EXPECT_GT(state.position, 0u);
}

TEST(ShardLoader, SharesABatchAmongRanks) {
  const TokenSplit split = counting_split(300);
  ShardLoader whole(split, {.batch = 12, .length = 6, .seed = 2});
  std::vector<ShardLoader> ranks;
  for (std::int64_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back(
        split, LoaderOptions{.batch = 4, .length = 6, .seed = 2, .rank = rank, .world_size = 3});
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::int32_t> expected = values(whole.next().ids);
    std::vector<std::int32_t> together;
    for (ShardLoader& rank : ranks) {
      const std::vector<std::int32_t> part = values(rank.next().ids);
      EXPECT_EQ(part.size(), 24u);
      together.insert(together.end(), part.begin(), part.end());
      EXPECT_EQ(rank.state(), whole.state());
    }
    EXPECT_EQ(together, expected);
  }
}

TEST(ShardLoader, DoesNotDependOnThreads) {
  const TokenSplit split = counting_split(700);
  const int before = num_threads();
  std::vector<std::vector<std::int32_t>> runs;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    ShardLoader loader(split, {.batch = 16, .length = 5, .seed = 3});
    std::vector<std::int32_t> run;
    for (int i = 0; i < 10; ++i) {
      const std::vector<std::int32_t> ids = values(loader.next().ids);
      run.insert(run.end(), ids.begin(), ids.end());
    }
    runs.push_back(run);
  }
  set_num_threads(before);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(ShardLoader, ShufflesByTheSeed) {
  const TokenSplit split = counting_split(700);
  ShardLoader a(split, {.batch = 16, .length = 5, .seed = 1});
  ShardLoader b(split, {.batch = 16, .length = 5, .seed = 2});
  EXPECT_NE(values(a.next().ids), values(b.next().ids));
}

TEST(ShardLoader, TakesASplitOfOneWindow) {
  const TokenSplit split = counting_split(9);
  ShardLoader loader(split, {.batch = 3, .length = 8});
  EXPECT_EQ(starts(loader.next()), (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_EQ(loader.state(), (LoaderState{3, 0}));
  EXPECT_ERROR(ShardLoader(split, {.batch = 1, .length = 9}),
               "split 'train' has 9 tokens; a window of 9 and its last target take 10");
}

TEST(ShardLoader, RefusesWhatMakesNoSense) {
  const TokenSplit split = counting_split(100);
  EXPECT_ERROR(ShardLoader(split, {.batch = 0, .length = 8}), "batches of 0 rows");
  EXPECT_ERROR(ShardLoader(split, {.batch = 1, .length = 0}), "rows of 0 tokens");
  EXPECT_ERROR(ShardLoader(split, {.batch = 1, .length = 8, .rank = 2, .world_size = 2}),
               "rank 2 of 2");
  EXPECT_ERROR(ShardLoader(split, {.batch = 1, .length = 8}, {0, 13}),
               "cannot continue at window 13 of epoch 0");
  EXPECT_ERROR(ShardLoader(split, {.batch = 1, .length = 8}, {UINT64_MAX, 0}), "cannot continue");
}

TEST(SequentialLoader, MakesEveryTokenATargetOnce) {
  for (const TokenId tokens : {2, 3, 17, 24, 25, 26, 100}) {
    const TokenSplit split = counting_split(tokens);
    SequentialLoader loader(split, 3, 8);
    EXPECT_EQ(loader.targets(), static_cast<std::uint64_t>(tokens - 1));
    std::vector<std::int32_t> seen;
    TokenBatch batch;
    while (loader.next(batch)) {
      expect_windows(batch, batch.ids.size(0), batch.ids.size(1));
      EXPECT_LE(batch.ids.size(0), 3);
      EXPECT_TRUE(batch.ids.size(1) == 8 || batch.ids.size(0) == 1);
      const std::vector<std::int32_t> targets = values(batch.targets);
      seen.insert(seen.end(), targets.begin(), targets.end());
      EXPECT_EQ(loader.targets_done(), seen.size());
    }
    std::vector<std::int32_t> expected(static_cast<std::size_t>(tokens - 1));
    std::iota(expected.begin(), expected.end(), 1);
    EXPECT_EQ(seen, expected);
  }
  EXPECT_ERROR(SequentialLoader(counting_split(1), 1, 8), "has 1 tokens");
  EXPECT_ERROR(SequentialLoader(counting_split(9), 0, 8), "batches of 0 rows");
}

}  // namespace
}  // namespace filigree

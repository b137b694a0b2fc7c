#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "runtime/pool.h"

namespace filigree {
namespace {

TEST(Buffer, IsAlignedAndHoldsWhatWasAsked) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{257}, std::size_t{5000000}}) {
    const auto buffer = Buffer::allocate(bytes);
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    if (bytes > 0) buffer->mutable_data()[bytes - 1] = std::byte{7};
  }
}

TEST(Buffer, AFreedBlockIsUsedAgain) {
  trim_pool();
  const std::byte* first = Buffer::allocate(100000)->data();
  const std::uint64_t before = pool_statistics().system_allocations;
  // Slightly smaller, same size class.
  EXPECT_EQ(Buffer::allocate(99000)->data(), first);
  EXPECT_EQ(pool_statistics().system_allocations, before);
}

TEST(Buffer, ABlockServesRequestsOfHalfItsSize) {
  trim_pool();
  const std::byte* first = Buffer::allocate(32 << 20)->data();
  const std::uint64_t before = pool_statistics().system_allocations;
  EXPECT_EQ(Buffer::allocate(17 << 20)->data(), first);
  EXPECT_EQ(Buffer::allocate(16 << 20)->data(), first);
  EXPECT_EQ(Buffer::allocate(32 << 20)->data(), first);  // it is whole again
  EXPECT_EQ(pool_statistics().system_allocations, before);
  const auto smaller = Buffer::allocate(15 << 20);
  EXPECT_EQ(pool_statistics().system_allocations, before + 1);
}

// One after the other, blocks of all sizes: what has lain longest goes back.
TEST(Buffer, ThePoolHoldsNoMoreThanWasInUseAtOnce) {
  trim_pool();
  reset_pool_peak();
  const std::uint64_t in_use = pool_statistics().bytes_in_use;
  constexpr std::size_t kMegabyte = 1 << 20;
  {
    const auto a = Buffer::allocate(96 * kMegabyte), b = Buffer::allocate(32 * kMegabyte);
    EXPECT_EQ(pool_statistics().bytes_in_use, in_use + 128 * kMegabyte);
  }
  for (const std::size_t size : {2, 5, 11, 24, 56, 128, 2, 5, 11, 24, 56, 128}) {
    const auto buffer = Buffer::allocate(size * kMegabyte);
    const PoolStatistics now = pool_statistics();
    EXPECT_LE(now.bytes_in_use + now.bytes_cached, now.peak_bytes_in_use + 64 * kMegabyte) << size;
  }
  trim_pool();
}

TEST(Buffer, StatisticsCountWhatIsInUse) {
  trim_pool();
  const std::uint64_t before = pool_statistics().bytes_in_use;
  reset_pool_peak();
  {
    const auto a = Buffer::allocate(1 << 20), b = Buffer::allocate(1 << 20);
    EXPECT_EQ(pool_statistics().bytes_in_use, before + (2 << 20));
  }
  EXPECT_EQ(pool_statistics().bytes_in_use, before);
  EXPECT_EQ(pool_statistics().peak_bytes_in_use, before + (2 << 20));
  EXPECT_EQ(pool_statistics().bytes_cached, 2u << 20);
  trim_pool();
  EXPECT_EQ(pool_statistics().bytes_cached, 0u);
}

TEST(Buffer, BorrowedMemoryIsReadOnlyAndKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<int>>(10, 3);
  const std::weak_ptr<std::vector<int>> watch = owner;
  auto buffer = Buffer::borrow(owner, owner->data(), 40);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_FALSE(buffer->writable());
  EXPECT_THROW(buffer->mutable_data(), Error);
  buffer.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Buffer, AnImpossibleSizeIsAnErrorThatNamesIt) {
  EXPECT_THROW(Buffer::allocate(std::size_t{1} << 60), Error);
}

// Memory that a test lets run out.
int blocks_left = 0;
std::byte* take_if_left(std::size_t bytes) {
  return blocks_left-- > 0 ? static_cast<std::byte*>(std::malloc(bytes)) : nullptr;
}

TEST(Pool, MemoryThatRunsOutIsAnErrorThatNamesTheOptions) {
  blocks_left = 2;
  Pool pool({take_if_left, [](std::byte* data) { std::free(data); },
             [] { return gpu_shortage(std::uint64_t{80} << 30, std::uint64_t{1} << 20); }});
  const std::size_t large = Pool::size_class(1 << 20), larger = Pool::size_class(2 << 20);
  const Pool::Block first = pool.take(large), second = pool.take(large);
  try {
    pool.take(larger);
    ADD_FAILURE() << "there was no memory left";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "out of memory: 2.1 MB more were needed while 2.1 MB are in use on a GPU of "
                 "85.9 GB (1.0 MB free); give a smaller --batch or --context, or in "
                 "training --recompute");
  }
  // What lies free goes back before it is an error, and the pool goes on.
  pool.give_back(first, large);
  pool.give_back(second, large);
  blocks_left = 0;
  EXPECT_THROW(pool.take(larger), Error);
  EXPECT_EQ(pool.statistics().bytes_cached, 0u);
  blocks_left = 1;
  pool.give_back(pool.take(larger), larger);
  pool.trim();
}

TEST(Buffer, ThreadsMayShareThePool) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const auto buffer = Buffer::allocate(static_cast<std::size_t>(1000 + i * 7));
        buffer->mutable_data()[0] = static_cast<std::byte>(t);
        ASSERT_EQ(buffer->data()[0], static_cast<std::byte>(t));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace filigree

// parallel_for covers every index once, whatever the numbers; run under ThreadSanitizer, these
// tests also show that the pool has no races.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "support/errors.h"

namespace filigree {
namespace {

class ThreadsTest : public testing::Test {
 protected:
  ThreadsTest() : previous_(num_threads()) { set_num_threads(4); }
  ~ThreadsTest() override { set_num_threads(previous_); }

 private:
  int previous_;
};

// Plain ints, not atomics: two threads in one range, or a missing hand-over of the results to the
// caller, would be a race that ThreadSanitizer reports.
std::vector<int> visits(std::int64_t count, std::int64_t grain) {
  std::vector<int> counts(static_cast<std::size_t>(count), 0);
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
  });
  return counts;
}

TEST_F(ThreadsTest, VisitsEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (const std::int64_t count : {1, 2, 7, 64, 1000}) {
      for (const std::int64_t grain : {1, 3, 64, 999, 1000, 5000}) {
        const std::vector<int> expected(static_cast<std::size_t>(count), 1);
        ASSERT_EQ(visits(count, grain), expected) << threads << ' ' << count << ' ' << grain;
      }
    }
  }
}

TEST_F(ThreadsTest, RangesBeginAtMultiplesOfTheGrain) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    parallel_for(103, 10, [](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(begin % 10, 0);
      EXPECT_EQ(end, std::min<std::int64_t>(begin + 10, 103));
    });
  }
}

TEST_F(ThreadsTest, NothingToDoCallsNothing) {
  parallel_for(0, 1, [](std::int64_t, std::int64_t) { FAIL(); });
  parallel_for(-5, 1, [](std::int64_t, std::int64_t) { FAIL(); });
}

TEST_F(ThreadsTest, AGrainBelowOneCountsAsOne) {
  EXPECT_EQ(visits(10, 0), std::vector<int>(10, 1));
  EXPECT_EQ(visits(10, -3), std::vector<int>(10, 1));
}

TEST_F(ThreadsTest, HugeCountsDoNotOverflow) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    std::atomic<std::int64_t> covered{0};
    parallel_for(kHuge, kHuge / 3, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_GE(begin, 0);
      EXPECT_GT(end, begin);
      covered += end - begin;
    });
    EXPECT_EQ(covered.load(), kHuge);
  }
}

TEST_F(ThreadsTest, NestedWorkRunsInTheCallingThread) {
  std::vector<int> counts(64 * 16, 0);
  parallel_for(64, 1, [&](std::int64_t outer, std::int64_t) {
    const auto thread = std::this_thread::get_id();
    parallel_for(16, 1, [&](std::int64_t inner, std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      ++counts[static_cast<std::size_t>(outer * 16 + inner)];
    });
  });
  EXPECT_EQ(counts, std::vector<int>(counts.size(), 1));
}

// Waits until `condition` holds, but not for ever.
bool eventually(auto&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Two ranges that wait for each other finish only on two threads.
bool two_threads_share_the_work() {
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    if (!eventually([&] { return arrived.load() == 2; })) met.store(false);
  });
  return met.load();
}

TEST_F(ThreadsTest, WorkersJoinWhetherAwakeOrAsleep) {
  for (const int pause : {0, 0, 50, 50}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    ASSERT_TRUE(two_threads_share_the_work());
  }
}

TEST_F(ThreadsTest, TheCallerWaitsForTheSlowestWorker) {
  const auto caller = std::this_thread::get_id();
  for (const int delay : {0, 1, 50}) {
    std::atomic<int> arrived{0};
    std::vector<int> done(2, 0);
    parallel_for(2, 1, [&](std::int64_t begin, std::int64_t) {
      ++arrived;
      EXPECT_TRUE(eventually([&] { return arrived.load() == 2; }));
      if (std::this_thread::get_id() != caller)
        std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      done[static_cast<std::size_t>(begin)] = 1;
    });
    ASSERT_EQ(done, std::vector<int>(2, 1));
  }
}

TEST_F(ThreadsTest, RethrowsTheExceptionOfTheLowestRange) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      const auto run = [] {
        parallel_for(100, 1, [](std::int64_t begin, std::int64_t) {
          if (begin >= 10 && begin % 5 == 0) fail("range {}", begin);
        });
      };
      ASSERT_EQ(error_of(run), "range 10");
    }
  }
}

TEST_F(ThreadsTest, TheLowestRangeCountsWhicheverThrowsFirst) {
  for (const std::int64_t first : {0, 1}) {
    std::atomic<int> arrived{0};
    std::atomic<bool> first_throws{false};
    const auto run = [&] {
      parallel_for(2, 1, [&](std::int64_t begin, std::int64_t) {
        ++arrived;
        EXPECT_TRUE(eventually([&] { return arrived.load() == 2; }));
        if (begin == first) {
          first_throws.store(true);
        } else {
          EXPECT_TRUE(eventually([&] { return first_throws.load(); }));
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        fail("range {}", begin);
      });
    };
    EXPECT_EQ(error_of(run), "range 0");
  }
}

TEST_F(ThreadsTest, WorksAfterAnException) {
  EXPECT_THROW(
      parallel_for(100, 1, [](std::int64_t, std::int64_t) { throw std::logic_error("x"); }),
      std::logic_error);
  EXPECT_EQ(visits(100, 1), std::vector<int>(100, 1));
}

TEST_F(ThreadsTest, ManyTinyJobs) {
  std::vector<std::int64_t> totals(4, 0);
  for (std::int64_t job = 0; job < 20'000; ++job) {
    parallel_for(4, 1, [&](std::int64_t begin, std::int64_t) {
      totals[static_cast<std::size_t>(begin)] += job;
    });
  }
  EXPECT_EQ(totals, std::vector<std::int64_t>(4, 20'000LL * 19'999 / 2));
}

TEST_F(ThreadsTest, JobsAfterPausesOfEveryLength) {
  // Long enough for the workers to be anywhere between looking for work and asleep.
  for (int i = 0; i < 300; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(i * 3));
    ASSERT_EQ(visits(8, 1), std::vector<int>(8, 1));
  }
}

TEST_F(ThreadsTest, SeveralCallersTakeTurns) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat)
        if (visits(50, 3) != std::vector<int>(50, 1)) ++wrong;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(ThreadsTest, AsManyPiecesOfWorkAsThreadsHaveAThreadEach) {
  set_num_threads(2);
  const auto threads_used = [] {
    std::mutex mutex;
    std::set<std::thread::id> used;
    parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      const std::lock_guard lock(mutex);
      used.insert(std::this_thread::get_id());
    });
    return used;
  };
  const OwnWork first;
  {
    const OwnWork same_thread;
    EXPECT_EQ(threads_used().size(), 2u) << "one in another counts once";
  }
  std::promise<void> begun, end;
  std::thread other([&] {
    const OwnWork second;
    begun.set_value();
    end.get_future().wait();
    EXPECT_EQ(threads_used(), std::set{std::this_thread::get_id()});
  });
  begun.get_future().wait();
  EXPECT_EQ(threads_used(), std::set{std::this_thread::get_id()});
  EXPECT_EQ(visits(50, 3), std::vector<int>(50, 1));
  end.set_value();
  other.join();
  EXPECT_EQ(threads_used().size(), 2u) << "alone again";
}

TEST_F(ThreadsTest, TheNumberOfThreadsCanChangeAtAnyTime) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop.load(); ++i) set_num_threads(i % 4 + 1);
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(visits(50, 3), std::vector<int>(50, 1));
  stop.store(true);
  changer.join();
  parallel_for(4, 1, [](std::int64_t, std::int64_t) { set_num_threads(3); });
  EXPECT_EQ(num_threads(), 3);
  EXPECT_EQ(visits(50, 3), std::vector<int>(50, 1));
}

TEST_F(ThreadsTest, RefusesSenselessNumbers) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-1), Error);
  EXPECT_THROW(set_num_threads(1025), Error);
  EXPECT_EQ(num_threads(), 4);
}

TEST_F(ThreadsTest, AForkedChildHasItsOwnWorkers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not allow threads in a forked child";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "GCC 12's AddressSanitizer may fork with the lock of its allocator held by a "
                  "thread that the child does not have";
#else
  visits(50, 3);  // so that the parent has workers
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    ::_exit(two_threads_share_the_work() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(visits(50, 3), std::vector<int>(50, 1));
#endif
}

}  // namespace
}  // namespace filigree

// The pool publishes one job at a time. Its workers may join a job while it is open; the caller
// works too, closes the job once every range is taken, and waits for those that joined. A worker
// that is asleep or not scheduled in time is not waited for: a short job then costs what the caller
// alone needs, not a wake-up.

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr int kMostThreads = 1024;

// A worker that finds no work looks again this many times before it sleeps: the operations of one
// forward pass follow each other within microseconds, a wake-up costs tens of them.
constexpr int kSpinsBeforeSleep = 4000;

thread_local bool inside_parallel = false;

// Pieces of work that threads have begun (OwnWork), and those of this thread, one in another.
std::atomic<int> pieces_of_work{0};
thread_local int own_pieces = 0;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

class Pool {
 public:
  explicit Pool(int threads) : spins_(threads <= available_cores() ? kSpinsBeforeSleep : 0) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system grants no more threads. Those that there are do the work.
    }
  }

  ~Pool() {
    state_.fetch_or(kStop);
    state_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(std::int64_t count, std::int64_t grain, const RangeBody& body) {
    std::lock_guard lock(run_mutex_);
    // The job is closed and nobody is inside: its fields and `state_` are this thread's alone.
    body_ = &body;
    count_ = count;
    grain_ = grain;
    ranges_ = (count - 1) / grain + 1;
    next_.store(0);
    failed_.store(false);
    failure_ = nullptr;
    failed_range_ = std::numeric_limits<std::int64_t>::max();
    state_.store(next_job(state_.load()) | kOpen);
    state_.notify_all();

    take_ranges();

    state_.fetch_and(~kOpen);
    for (int spins = 0;; ++spins) {
      const std::uint32_t seen = departures_.load();
      if ((state_.load() & kInside) == 0) break;
      if (spins < spins_)
        pause_briefly();
      else
        departures_.wait(seen);
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // `state_` in one word, so that joining an open job is one step: the number of workers inside,
  // the two flags, and in the remaining bits the number of the job. That number only tells a worker
  // whether it has been in this job already, so it may wrap.
  static constexpr std::uint32_t kInside = 0x7FF;
  static constexpr std::uint32_t kOpen = 0x800;
  static constexpr std::uint32_t kStop = 0x1000;
  static constexpr std::uint32_t kJob = ~(kInside | kOpen | kStop);
  static_assert(kMostThreads <= kInside);

  static std::uint32_t next_job(std::uint32_t state) { return (state & kJob) + (kStop << 1); }

  void work() {
    std::uint32_t last_job = 0;
    int spins = 0;
    while (true) {
      std::uint32_t state = state_.load();
      if ((state & kStop) != 0) return;
      if ((state & kOpen) != 0 && (state & kJob) != last_job) {
        if (!state_.compare_exchange_weak(state, state + 1)) continue;
        last_job = state & kJob;
        take_ranges();
        // The last one out of a closed job tells the caller, who may be asleep.
        const std::uint32_t left = state_.fetch_sub(1) - 1;
        if ((left & (kInside | kOpen)) == 0) {
          departures_.fetch_add(1);
          departures_.notify_all();
        }
        spins = 0;
      } else if (spins < spins_) {
        ++spins;
        pause_briefly();
      } else {
        state_.wait(state);
      }
    }
  }

  void take_ranges() {
    inside_parallel = true;
    // Asked before a range is taken: a taken range always runs, so that of several ranges that
    // throw, the lowest is among those that ran.
    while (!failed_.load()) {
      const std::int64_t range = next_.fetch_add(1);
      if (range >= ranges_) break;
      const std::int64_t begin = range * grain_;
      try {
        (*body_)(begin, begin + std::min(grain_, count_ - begin));
      } catch (...) {
        std::lock_guard lock(failure_mutex_);
        if (range < failed_range_) {
          failed_range_ = range;
          failure_ = std::current_exception();
        }
        failed_.store(true);
      }
    }
    inside_parallel = false;
  }

  const int spins_;
  std::mutex run_mutex_;
  std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> departures_{0};

  // The job.
  const RangeBody* body_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t grain_ = 1;
  std::int64_t ranges_ = 0;
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::int64_t failed_range_ = 0;
  // On a line of its own: every thread writes it while all read the fields above.
  alignas(64) std::atomic<std::int64_t> next_{0};

  // Last, so that the threads start when everything above is in place.
  alignas(64) std::vector<std::thread> workers_;
};

// The pool in use, made by the first parallel_for. Never destroyed: at exit the workers sleep, and
// waiting for them could hang when exit() is called from a body.
struct PoolHolder {
  std::mutex mutex;
  std::shared_ptr<Pool> pool;
  PoolHolder* before_fork = nullptr;
};

PoolHolder*& holder() {
  static PoolHolder* instance = [] {
    // A forked child has no workers, and possibly a locked mutex: it starts afresh.
    ::pthread_atfork(nullptr, nullptr, [] {
      auto* fresh = new PoolHolder;
      fresh->before_fork = std::exchange(holder(), fresh);
    });
    return new PoolHolder;
  }();
  return instance;
}

std::atomic<int> requested_threads{0};

std::shared_ptr<Pool> pool() {
  PoolHolder& held = *holder();
  std::lock_guard lock(held.mutex);
  if (!held.pool) held.pool = std::make_shared<Pool>(num_threads());
  return held.pool;
}

}  // namespace

void set_num_threads(int count) {
  require(count >= 1 && count <= kMostThreads, "threads: {} is not between 1 and {}", count,
          kMostThreads);
  std::shared_ptr<Pool> old;  // destroyed after the lock, by its last user
  PoolHolder& held = *holder();
  std::lock_guard lock(held.mutex);
  if (requested_threads.exchange(count) != count) old = std::move(held.pool);
}

int num_threads() {
  int count = requested_threads.load();
  if (count != 0) return count;
  count = std::min(available_cores(), kMostThreads);
  // Another thread may have set it meanwhile.
  int unset = 0;
  return requested_threads.compare_exchange_strong(unset, count) ? count : unset;
}

// One in another is one piece still.
OwnWork::OwnWork() {
  if (own_pieces++ == 0) ++pieces_of_work;
}

OwnWork::~OwnWork() {
  if (--own_pieces == 0) --pieces_of_work;
}

int threads_for_ranges() {
  const int threads = num_threads();
  const bool alone = inside_parallel || (own_pieces > 0 && pieces_of_work.load() >= threads);
  return alone ? 1 : threads;
}

void parallel_for(std::int64_t count, std::int64_t grain, const RangeBody& body) {
  if (count <= 0) return;
  grain = std::clamp<std::int64_t>(grain, 1, count);
  if (count == grain || threads_for_ranges() == 1) {
    for (std::int64_t begin = 0; begin < count;) {
      const std::int64_t end = begin + std::min(grain, count - begin);
      body(begin, end);
      begin = end;
    }
    return;
  }
  pool()->run(count, grain, body);
}

}  // namespace filigree

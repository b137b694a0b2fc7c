// The process's worker threads.
//
// Work is cut into index ranges; which thread runs a range is not fixed, so a body must write only
// what belongs to its own range and must not reduce across ranges. Results then do not depend on
// scheduling. A parallel_for inside a body runs serially in the calling thread.
#pragma once

#include <cstdint>
#include <functional>

namespace filigree {

// Number of threads that share the work, the caller included, from the next parallel_for on.
// Default: available_cores(). Throws Error unless `count` is between 1 and 1024.
void set_num_threads(int count);
int num_threads();

using RangeBody = std::function<void(std::int64_t begin, std::int64_t end)>;

// Calls body(begin, end) for the ranges [0, grain), [grain, 2 grain), ... of [0, count), the last
// one possibly shorter, on all threads; returns when every range is done. A grain below 1 counts as
// 1.
//
// When bodies throw, no further ranges are begun and the exception of the lowest range that threw
// is rethrown: the same one whatever the scheduling.
//
// Calls from several threads take turns, so a body must not wait for another thread's parallel_for.
void parallel_for(std::int64_t count, std::int64_t grain, const RangeBody& body);

// Threads that would share the ranges of a parallel_for that begins now in this thread. A hint, for
// how to cut work; results must not depend on it.
int threads_for_ranges();

// Says that the thread which makes it computes a piece of work of its own while it exists, beside
// others that say so. Once there are as many of them as threads, each does its ranges itself: work
// that is cut into ranges of a few microseconds would spend more on taking turns than on itself.
class OwnWork {
 public:
  OwnWork();
  ~OwnWork();
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
};

}  // namespace filigree

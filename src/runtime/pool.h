// Keeps freed blocks of one kind of memory and hands them out again.
//
// A training step frees and asks for the same large blocks again and again, and fresh memory from
// the system costs more than the arithmetic done on it. On the GPU all work goes through one
// stream, so a block may be handed out again while the kernels that used it are still waiting to
// run: what uses it next runs after them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "filigree/runtime/pool_statistics.h"

namespace filigree {

// Where a pool's blocks come from.
struct MemorySource {
  std::byte* (*allocate)(std::size_t bytes);  // null when there is no more
  void (*release)(std::byte* data);
  // What to say, after how much was needed and how much is in use, when there is no more.
  std::string (*shortage)();
};

class Pool {
 public:
  explicit Pool(const MemorySource& source) : source_(source) {}

  // Sizes are rounded up to an eighth of their power of two, so that tensors of nearly the same
  // size share blocks and at most 12.5 % is wasted.
  static std::size_t size_class(std::size_t bytes);

  // A block of exactly `capacity` bytes, a size class. Throws Error when there is no more memory.
  std::byte* take(std::size_t capacity);
  void give_back(std::byte* data, std::size_t capacity);

  PoolStatistics statistics();
  void reset_peak();  // the peak starts again from what is in use now
  void trim();        // returns all cached blocks to the system

 private:
  std::byte* from_system(std::size_t capacity);
  void release_cached();

  MemorySource source_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  PoolStatistics statistics_;
};

}  // namespace filigree

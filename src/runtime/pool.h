// Keeps freed blocks of one kind of memory and hands them out again.
//
// A training step frees and asks for the same large blocks again and again, and fresh memory from
// the system costs more than the arithmetic done on it. On the GPU all work goes through one
// stream, so a block may be handed out again while the kernels that used it are still waiting to
// run: what uses it next runs after them.
//
// Work whose shapes change (prompts of many lengths, runs that part ways) would leave blocks of
// every size behind. Where the memory is shared with other programs, a block therefore also serves
// requests of down to half its size, and before more is fetched from the system, blocks that have
// lain longest go back as far as the pool holds more than was ever in use at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "filigree/runtime.h"

namespace filigree {

// Where a pool's blocks come from.
struct MemorySource {
  std::byte* (*allocate)(std::size_t bytes);  // null when there is no more
  void (*release)(std::byte* data);
  // What to say, after how much was needed and how much is in use, when there is no more.
  std::string (*shortage)();
  bool shared = false;  // with other programs: see above
};

// The shortage of a GPU, with the options that need less.
std::string gpu_shortage(std::uint64_t total_bytes, std::uint64_t free_bytes);

class Pool {
 public:
  explicit Pool(const MemorySource& source) : source_(source) {}

  // Sizes are rounded up to an eighth of their power of two, so that tensors of nearly the same
  // size share blocks and at most 12.5 % is wasted.
  static std::size_t size_class(std::size_t bytes);

  struct Block {
    std::byte* data = nullptr;
    std::size_t capacity = 0;
  };
  // A block of at least `capacity` bytes, a size class; exactly so many where memory is not shared.
  // Throws Error when there is no more memory.
  Block take(std::size_t capacity);
  // `capacity` is what was asked for.
  void give_back(const Block& block, std::size_t capacity);

  PoolStatistics statistics();
  void reset_peak();  // the peak starts again from what is in use now
  void trim();        // returns all cached blocks to the system

 private:
  // A free block and when it was given back, counted in blocks.
  struct Free {
    std::byte* data;
    std::uint64_t since;
  };
  using FreeBlocks = std::map<std::size_t, std::deque<Free>>;  // by capacity, the latest last

  FreeBlocks::iterator find_free(std::size_t capacity);
  std::byte* from_system(std::size_t capacity);
  void release_oldest(std::size_t most_cached);
  void release_cached();

  MemorySource source_;
  std::mutex mutex_;
  FreeBlocks free_;  // no list is empty
  std::uint64_t given_back_ = 0;
  PoolStatistics statistics_;
};

}  // namespace filigree

#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace filigree {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Sizes are rounded up to an eighth of their power of two, so that tensors of nearly the same size
// share blocks and at most 12.5 % is wasted.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= 256) return 256;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

class Pool {
 public:
  std::byte* take(std::size_t capacity) {
    std::lock_guard lock(mutex_);
    std::byte* data = nullptr;
    if (auto found = free_.find(capacity); found != free_.end() && !found->second.empty()) {
      data = found->second.back();
      found->second.pop_back();
      statistics_.bytes_cached -= capacity;
    } else {
      data = from_system(capacity);
    }
    statistics_.bytes_in_use += capacity;
    statistics_.peak_bytes_in_use =
        std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
    return data;
  }

  void give_back(std::byte* data, std::size_t capacity) {
    std::lock_guard lock(mutex_);
    free_[capacity].push_back(data);
    statistics_.bytes_in_use -= capacity;
    statistics_.bytes_cached += capacity;
  }

  PoolStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  }

  void trim() {
    std::lock_guard lock(mutex_);
    release_cached();
  }

 private:
  std::byte* from_system(std::size_t capacity) {
    // Large blocks start on a huge page and ask for them: a 200 MB tensor then takes 100 page
    // faults instead of 50,000.
    const bool large = capacity >= 2 * kHugePage;
    const std::size_t alignment = large ? kHugePage : kAlignment;
    const std::size_t rounded = (capacity + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(alignment, rounded);
    if (data == nullptr) {
      release_cached();
      data = std::aligned_alloc(alignment, rounded);
    }
    if (data == nullptr)
      fail("out of memory: {} more were needed while {} are in use; use a smaller batch or context",
           human_bytes(capacity), human_bytes(statistics_.bytes_in_use));
    if (large) ::madvise(data, rounded, MADV_HUGEPAGE);  // advice only: failing is fine
    ++statistics_.system_allocations;
    return static_cast<std::byte*>(data);
  }

  void release_cached() {
    for (auto& [capacity, blocks] : free_)
      for (std::byte* block : blocks) std::free(block);
    free_.clear();
    statistics_.bytes_cached = 0;
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  PoolStatistics statistics_;
};

// Never destroyed: tensors in static storage may be freed after any static pool would be.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

}  // namespace

std::shared_ptr<Buffer> Buffer::allocate(std::size_t bytes) {
  require(bytes <= (std::size_t{1} << 46), "buffer: {} bytes are more than any machine has", bytes);
  const std::size_t capacity = size_class(bytes);
  return std::shared_ptr<Buffer>(new Buffer(pool().take(capacity), bytes, capacity, nullptr));
}

std::shared_ptr<Buffer> Buffer::borrow(std::shared_ptr<const void> owner, const void* data,
                                       std::size_t bytes) {
  require(owner != nullptr, "buffer: borrowed memory needs an owner");
  auto* start = static_cast<std::byte*>(const_cast<void*>(data));
  return std::shared_ptr<Buffer>(new Buffer(start, bytes, 0, std::move(owner)));
}

Buffer::Buffer(std::byte* data, std::size_t size, std::size_t capacity,
               std::shared_ptr<const void> owner)
    : data_(data), size_(size), capacity_(capacity), owner_(std::move(owner)) {}

Buffer::~Buffer() {
  if (owner_ == nullptr) pool().give_back(data_, capacity_);
}

std::byte* Buffer::mutable_data() {
  require(writable(), "buffer: borrowed memory is read-only; copy the tensor before changing it");
  return data_;
}

PoolStatistics pool_statistics() { return pool().statistics(); }
void reset_pool_peak() { pool().reset_peak(); }
void trim_pool() { pool().trim(); }

}  // namespace filigree

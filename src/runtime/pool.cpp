#include "filigree/runtime/pool.h"

#include <algorithm>
#include <bit>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {

std::size_t Pool::size_class(std::size_t bytes) {
  if (bytes <= 256) return 256;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

std::byte* Pool::take(std::size_t capacity) {
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
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  return data;
}

void Pool::give_back(std::byte* data, std::size_t capacity) {
  std::lock_guard lock(mutex_);
  free_[capacity].push_back(data);
  statistics_.bytes_in_use -= capacity;
  statistics_.bytes_cached += capacity;
}

PoolStatistics Pool::statistics() {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void Pool::reset_peak() {
  std::lock_guard lock(mutex_);
  statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
}

void Pool::trim() {
  std::lock_guard lock(mutex_);
  release_cached();
}

std::byte* Pool::from_system(std::size_t capacity) {
  std::byte* data = source_.allocate(capacity);
  if (data == nullptr) {
    release_cached();
    data = source_.allocate(capacity);
  }
  if (data == nullptr)
    fail("out of memory: {} more were needed while {} are in use{}", human_bytes(capacity),
         human_bytes(statistics_.bytes_in_use), source_.shortage());
  ++statistics_.system_allocations;
  return data;
}

void Pool::release_cached() {
  for (auto& [capacity, blocks] : free_)
    for (std::byte* block : blocks) source_.release(block);
  free_.clear();
  statistics_.bytes_cached = 0;
}

}  // namespace filigree

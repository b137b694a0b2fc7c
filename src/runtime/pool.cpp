#include "runtime/pool.h"

#include <algorithm>
#include <bit>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// Less than this is kept whatever was in use: small programs should not fetch and return.
constexpr std::size_t kLeastHeld = std::size_t{64} << 20;

}  // namespace

std::string gpu_shortage(std::uint64_t total_bytes, std::uint64_t free_bytes) {
  return fmt::format(
      " on a GPU of {} ({} free); give a smaller --batch or --context, or in training "
      "--recompute",
      human_bytes(total_bytes), human_bytes(free_bytes));
}

std::size_t Pool::size_class(std::size_t bytes) {
  if (bytes <= 256) return 256;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

Pool::FreeBlocks::iterator Pool::find_free(std::size_t capacity) {
  if (!source_.shared) return free_.find(capacity);
  const auto found = free_.lower_bound(capacity);
  return found != free_.end() && found->first > 2 * capacity ? free_.end() : found;
}

Pool::Block Pool::take(std::size_t capacity) {
  std::lock_guard lock(mutex_);
  Block block;
  if (const auto found = find_free(capacity); found != free_.end()) {
    block = {found->second.back().data, found->first};
    found->second.pop_back();
    if (found->second.empty()) free_.erase(found);
    statistics_.bytes_cached -= block.capacity;
  } else {
    block = {from_system(capacity), capacity};
  }
  statistics_.bytes_in_use += capacity;
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  return block;
}

void Pool::give_back(const Block& block, std::size_t capacity) {
  std::lock_guard lock(mutex_);
  free_[block.capacity].push_back({block.data, ++given_back_});
  statistics_.bytes_in_use -= capacity;
  statistics_.bytes_cached += block.capacity;
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
  if (source_.shared) {
    const std::size_t most =
        std::max<std::size_t>(statistics_.peak_bytes_in_use, kLeastHeld) - statistics_.bytes_in_use;
    release_oldest(most > capacity ? most - capacity : 0);
  }
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

void Pool::release_oldest(std::size_t most_cached) {
  while (statistics_.bytes_cached > most_cached) {
    const auto oldest =
        std::min_element(free_.begin(), free_.end(), [](const auto& a, const auto& b) {
          return a.second.front().since < b.second.front().since;
        });
    source_.release(oldest->second.front().data);
    statistics_.bytes_cached -= oldest->first;
    oldest->second.pop_front();
    if (oldest->second.empty()) free_.erase(oldest);
  }
}

void Pool::release_cached() {
  for (auto& [capacity, blocks] : free_)
    for (const Free& block : blocks) source_.release(block.data);
  free_.clear();
  statistics_.bytes_cached = 0;
}

}  // namespace filigree

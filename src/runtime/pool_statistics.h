#pragma once

#include <cstdint>

namespace filigree {

// Of a pool of memory (pool.h).
struct PoolStatistics {
  std::uint64_t bytes_in_use = 0;
  std::uint64_t bytes_cached = 0;  // free, kept for reuse
  std::uint64_t peak_bytes_in_use = 0;
  std::uint64_t system_allocations = 0;
};

}  // namespace filigree

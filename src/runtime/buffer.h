// Memory behind tensors.
//
// A Buffer is a block of bytes with one owner: the pool, which takes it back when the last user
// lets go and hands it out again, or an outside object such as a mapped file, whose bytes are
// read-only. Reuse matters: a training step frees and asks for the same large blocks again and
// again, and fresh pages from the system cost more than the arithmetic done on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace filigree {

class Buffer {
 public:
  // At least `bytes` bytes from the pool, aligned to 64, with undefined contents. Throws Error when
  // the system has no more memory, naming the size.
  static std::shared_ptr<Buffer> allocate(std::size_t bytes);

  // A read-only view of `bytes` bytes at `data`, which `owner` keeps alive.
  static std::shared_ptr<Buffer> borrow(std::shared_ptr<const void> owner, const void* data,
                                        std::size_t bytes);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const std::byte* data() const { return data_; }
  // Throws Error for a borrowed buffer.
  std::byte* mutable_data();
  bool writable() const { return owner_ == nullptr; }
  std::size_t size() const { return size_; }

 private:
  Buffer(std::byte* data, std::size_t size, std::size_t capacity,
         std::shared_ptr<const void> owner);

  std::byte* data_;
  std::size_t size_;
  std::size_t capacity_;  // the pool's size class; 0 when borrowed
  std::shared_ptr<const void> owner_;
};

struct PoolStatistics {
  std::uint64_t bytes_in_use = 0;
  std::uint64_t bytes_cached = 0;  // free, kept for reuse
  std::uint64_t peak_bytes_in_use = 0;
  std::uint64_t system_allocations = 0;
};

PoolStatistics pool_statistics();

// Makes the peak start again from what is in use now.
void reset_pool_peak();

// Returns all cached blocks to the system.
void trim_pool();

}  // namespace filigree

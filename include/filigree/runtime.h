// Memory and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "filigree/device.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------


// Of a pool of memory (pool.h).
struct PoolStatistics {
  std::uint64_t bytes_in_use = 0;
  std::uint64_t bytes_cached = 0;  // free, kept for reuse
  std::uint64_t peak_bytes_in_use = 0;
  std::uint64_t system_allocations = 0;
};

// -------------------------------------------------------------------------------------------------
// Memory behind tensors.
//
// A Buffer is a block of bytes with one owner: the pool of its device, which takes it back when the
// last user lets go and hands it out again, or an outside object such as a mapped file, whose bytes
// are read-only.

class Buffer {
 public:
  // At least `bytes` bytes from the device's pool, aligned to 64 (256 on a GPU), with undefined
  // contents. Throws Error when there is no more memory, naming the size, or when the device is a
  // GPU that this build or machine does not have.
  static std::shared_ptr<Buffer> allocate(std::size_t bytes, DeviceKind device = DeviceKind::kCpu);

  // A read-only view of `bytes` bytes of the CPU at `data`, which `owner` keeps alive.
  static std::shared_ptr<Buffer> borrow(std::shared_ptr<const void> owner, const void* data,
                                        std::size_t bytes);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  DeviceKind device() const { return device_; }
  // An address on the buffer's device: the CPU may follow it only where device() is the CPU.
  const std::byte* data() const { return data_; }
  // Throws Error for a borrowed buffer.
  std::byte* mutable_data();
  bool writable() const { return owner_ == nullptr; }
  std::size_t size() const { return size_; }

 private:
  Buffer(DeviceKind device, std::byte* data, std::size_t size, std::size_t capacity,
         std::shared_ptr<const void> owner);

  DeviceKind device_;
  std::byte* data_;
  std::size_t size_;
  std::size_t capacity_;  // the pool's size class; 0 when borrowed
  std::shared_ptr<const void> owner_;
};

// Of a device's pool; zeros for a GPU that has not been used.
PoolStatistics pool_statistics(DeviceKind device = DeviceKind::kCpu);

// Makes the peak start again from what is in use now.
void reset_pool_peak(DeviceKind device = DeviceKind::kCpu);

// Returns all cached blocks to the system.
void trim_pool(DeviceKind device = DeviceKind::kCpu);

// Copies between devices or within one. A copy to the CPU has arrived when the call returns; the
// others are in the order of the GPU's work, and the source of a copy to the GPU may be changed at
// once.
void copy_memory(std::byte* to, DeviceKind to_device, const std::byte* from, DeviceKind from_device,
                 std::size_t bytes);

void zero_memory(std::byte* to, DeviceKind device, std::size_t bytes);

// -------------------------------------------------------------------------------------------------
// The process's worker threads.
//
// Work is cut into index ranges; which thread runs a range is not fixed, so a body must write only
// what belongs to its own range and must not reduce across ranges. Results then do not depend on
// scheduling. A parallel_for inside a body runs serially in the calling thread.

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

// Memory behind tensors.
//
// A Buffer is a block of bytes with one owner: the pool of its device, which takes it back when the
// last user lets go and hands it out again, or an outside object such as a mapped file, whose bytes
// are read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device.h"
#include "runtime/pool_statistics.h"

namespace filigree {

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

}  // namespace filigree

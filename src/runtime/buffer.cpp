#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/runtime.h"
#include "runtime/cuda/memory_cuda.h"
#include "runtime/pool.h"

namespace filigree {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* allocate_pages(std::size_t capacity) {
  // Large blocks start on a huge page and ask for them: a 200 MB tensor then takes 100 page faults
  // instead of 50,000.
  const bool large = capacity >= 2 * kHugePage;
  const std::size_t alignment = large ? kHugePage : kAlignment;
  const std::size_t rounded = (capacity + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded);
  if (data != nullptr && large)
    ::madvise(data, rounded, MADV_HUGEPAGE);  // advice only: failing is fine
  return static_cast<std::byte*>(data);
}

// Never destroyed: tensors in static storage may be freed after any static pool would be.
Pool& cpu_pool() {
  static Pool* instance =
      new Pool({allocate_pages, [](std::byte* data) { std::free(data); },
                [] { return std::string("; use a smaller batch or context"); }, true});
  return *instance;
}

Pool& gpu_pool() {
  static Pool* instance = [] {
    require_device(DeviceKind::kCuda);
    if constexpr (kHasCuda) return new Pool(cuda::memory_source());
    return static_cast<Pool*>(nullptr);
  }();
  return *instance;
}

Pool& pool(DeviceKind device) { return device == DeviceKind::kCpu ? cpu_pool() : gpu_pool(); }

}  // namespace

std::shared_ptr<Buffer> Buffer::allocate(std::size_t bytes, DeviceKind device) {
  require(bytes <= (std::size_t{1} << 46), "buffer: {} bytes are more than any machine has", bytes);
  const std::size_t capacity = Pool::size_class(bytes);
  const Pool::Block block = pool(device).take(capacity);
  Buffer* made = nullptr;
  try {
    made = new Buffer(device, block.data, bytes, block.capacity, nullptr);
  } catch (...) {  // it has no owner yet
    pool(device).give_back(block, capacity);
    throw;
  }
  return std::shared_ptr<Buffer>(made);
}

std::shared_ptr<Buffer> Buffer::borrow(std::shared_ptr<const void> owner, const void* data,
                                       std::size_t bytes) {
  require(owner != nullptr, "buffer: borrowed memory needs an owner");
  auto* start = static_cast<std::byte*>(const_cast<void*>(data));
  return std::shared_ptr<Buffer>(new Buffer(DeviceKind::kCpu, start, bytes, 0, std::move(owner)));
}

Buffer::Buffer(DeviceKind device, std::byte* data, std::size_t size, std::size_t capacity,
               std::shared_ptr<const void> owner)
    : device_(device), data_(data), size_(size), capacity_(capacity), owner_(std::move(owner)) {}

Buffer::~Buffer() {
  if (owner_ == nullptr) pool(device_).give_back({data_, capacity_}, Pool::size_class(size_));
}

std::byte* Buffer::mutable_data() {
  require(writable(), "buffer: borrowed memory is read-only; copy the tensor before changing it");
  return data_;
}

PoolStatistics pool_statistics(DeviceKind device) {
  if (device == DeviceKind::kCuda && !has_device(device)) return {};
  return pool(device).statistics();
}

void reset_pool_peak(DeviceKind device) { pool(device).reset_peak(); }
void trim_pool(DeviceKind device) { pool(device).trim(); }

void copy_memory(std::byte* to, DeviceKind to_device, const std::byte* from, DeviceKind from_device,
                 std::size_t bytes) {
  if (bytes == 0) return;
  if (to_device == DeviceKind::kCpu && from_device == DeviceKind::kCpu) {
    std::memcpy(to, from, bytes);
    return;
  }
  if constexpr (kHasCuda) {
    if (to_device == from_device)
      cuda::copy_within(to, from, bytes);
    else if (to_device == DeviceKind::kCuda)
      cuda::copy_from_host(to, from, bytes);
    else
      cuda::copy_to_host(to, from, bytes);
  }
}

void zero_memory(std::byte* to, DeviceKind device, std::size_t bytes) {
  if (bytes == 0) return;
  if (device == DeviceKind::kCpu) {
    std::memset(to, 0, bytes);
    return;
  }
  if constexpr (kHasCuda) cuda::zero(to, bytes);
}

}  // namespace filigree

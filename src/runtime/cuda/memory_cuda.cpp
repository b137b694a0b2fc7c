#include "runtime/cuda/memory_cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "filigree/names.h"
#include "filigree/runtime.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

std::byte* allocate(std::size_t bytes) {
  stream();  // chooses the device of this thread
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(code, "allocate memory on the GPU");
  return static_cast<std::byte*>(data);
}

// cudaFree waits for all work on the device, so nothing can still be using the block. At the end of
// the process the driver may be gone already, and the memory with it.
void release(std::byte* data) { cudaFree(data); }

std::string shortage() {
  std::size_t free_bytes = 0, total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "ask for the free memory of the GPU");
  return gpu_shortage(total, free_bytes);
}

// One core copies more slowly than the bus to the GPU does. No body of a parallel_for may copy from
// or to the GPU, since this one would wait for it.
void copy_by_all_threads(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::int64_t kPiece = std::int64_t{256} << 10;
  parallel_for(static_cast<std::int64_t>(bytes), kPiece, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

// Pinned memory that copies pass through, in slots that take turns.
class Staging {
 public:
  static constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
  static constexpr std::size_t kSlots = 4;

  Staging() {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, kSlots * kSlotBytes), "allocate pinned memory");
    memory_ = static_cast<std::byte*>(memory);
    for (cudaEvent_t& event : done_)
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
  }

  // Never destroyed, as the pools.
  static Staging& instance() {
    static Staging* staging = new Staging;
    return *staging;
  }

  void upload(std::byte* to, const std::byte* from, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t begin = 0; begin < bytes; begin += kSlotBytes) {
      const std::size_t count = std::min(kSlotBytes, bytes - begin);
      std::byte* slot = wait_for_slot();
      copy_by_all_threads(slot, from + begin, count);
      check(cudaMemcpyAsync(to + begin, slot, count, cudaMemcpyHostToDevice, stream()),
            "copy to the GPU");
      check(cudaEventRecord(done_[current_], stream()), "record an event");
    }
  }

  void download(std::byte* to, const std::byte* from, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    // One piece is on its way while the one before is copied out.
    std::size_t begin = 0, waiting_begin = 0, waiting_count = 0;
    std::size_t waiting_slot = 0;
    const auto finish = [&] {
      if (waiting_count == 0) return;
      check(cudaEventSynchronize(done_[waiting_slot]), "copy from the GPU");
      copy_by_all_threads(to + waiting_begin, memory_ + waiting_slot * kSlotBytes, waiting_count);
      waiting_count = 0;
    };
    while (begin < bytes) {
      const std::size_t count = std::min(kSlotBytes, bytes - begin);
      std::byte* slot = wait_for_slot();
      check(cudaMemcpyAsync(slot, from + begin, count, cudaMemcpyDeviceToHost, stream()),
            "copy from the GPU");
      check(cudaEventRecord(done_[current_], stream()), "record an event");
      const std::size_t just_started = current_;
      finish();
      waiting_begin = begin, waiting_count = count, waiting_slot = just_started;
      begin += count;
    }
    finish();
  }

 private:
  std::byte* wait_for_slot() {
    current_ = (current_ + 1) % kSlots;
    check(cudaEventSynchronize(done_[current_]), "wait for a copy");
    return memory_ + current_ * kSlotBytes;
  }

  std::mutex mutex_;
  std::byte* memory_ = nullptr;
  std::array<cudaEvent_t, kSlots> done_ = {};
  std::size_t current_ = 0;
};

}  // namespace

MemorySource memory_source() { return {allocate, release, shortage}; }

void copy_within(std::byte* to, const std::byte* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()),
        "copy within the GPU");
}

void copy_from_host(std::byte* to, const std::byte* from, std::size_t bytes) {
  stream();
  Staging::instance().upload(to, from, bytes);
}

void copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes) {
  stream();
  Staging::instance().download(to, from, bytes);
}

void zero(std::byte* to, std::size_t bytes) {
  check(cudaMemsetAsync(to, 0, bytes, stream()), "set memory of the GPU to zero");
}

}  // namespace filigree::cuda

#include "tests/faults/failing_memory.h"

#include <stdlib.h>

#include <atomic>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0}, fails_at{0};

// True for the one allocation that finds no memory.
bool runs_dry() { return counting && ++allocations == fails_at; }

void* allocate(size_t size) {
  void* memory = runs_dry() ? nullptr : malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate(size_t size, std::align_val_t align) {
  void* memory = nullptr;
  if (runs_dry() || posix_memalign(&memory, static_cast<size_t>(align), size) != 0)
    throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace filigree::faults {

void count_allocations(long fails) {
  if (counting) return;
  fails_at = fails;
  counting = true;
}
long counted_allocations() { return allocations; }

}  // namespace filigree::faults

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t align) { return allocate(size, align); }
void* operator new[](size_t size, std::align_val_t align) { return allocate(size, align); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return runs_dry() ? nullptr : malloc(size == 0 ? 1 : size);
}
void* operator new[](size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

// Buffers of tensors.
extern "C" void* aligned_alloc(size_t align, size_t size) {
  void* memory = nullptr;
  if (runs_dry() || posix_memalign(&memory, align, size) != 0) return nullptr;
  return memory;
}

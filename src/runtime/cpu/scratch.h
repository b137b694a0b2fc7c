// Working memory of CPU kernels: one block a thread and purpose, grown when needed and kept, so
// that inner kernels never allocate.
#pragma once

#include <cstddef>

namespace filigree {

enum class ScratchSlot {
  kJob,     // for the range of a parallel_for that this thread is working on
  kCaller,  // for the thread that starts a parallel_for and shares the memory with its workers
};

// At least `floats` floats, aligned to a page; contents undefined. Valid until the same thread asks
// for the same slot again.
float* scratch_floats(ScratchSlot slot, std::size_t floats);

}  // namespace filigree

#pragma once

#include <cstddef>

namespace filigree::cuda {

// Lets a kernel be launched with `bytes` of dynamic shared memory. Throws Error naming the
// operation when the GPU has less.
void allow_shared_memory(const void* kernel, std::size_t bytes, const char* op);

}  // namespace filigree::cuda

// Memory of the GPU and copies from and to it; linked only where kHasCuda. filigree/runtime.h is
// the interface of it all.
#pragma once

#include <cstddef>

#include "runtime/pool.h"

namespace filigree::cuda {

MemorySource memory_source();

// In the order of the compute stream. Copies from the host go through pinned memory, so that they
// return without waiting for the GPU; copies to the host wait until they have arrived.
void copy_within(std::byte* to, const std::byte* from, std::size_t bytes);
void copy_from_host(std::byte* to, const std::byte* from, std::size_t bytes);
void copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes);
void zero(std::byte* to, std::size_t bytes);

}  // namespace filigree::cuda

#include "runtime/cuda/shared_memory_cuda.h"

#include "filigree/names.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/devices_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {

void allow_shared_memory(const void* kernel, std::size_t bytes, const char* op) {
  constexpr std::size_t kWithoutAsking = std::size_t{46} << 10;  // 48 KiB less static arrays
  constexpr std::size_t kStatic = 2048;
  if (bytes <= kWithoutAsking) return;
  stream();
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_in_use()),
        "ask for the shared memory of the GPU");
  require(bytes + kStatic <= static_cast<std::size_t>(most),
          "{}: a row of this length needs {} of shared memory and the GPU has {} a block; use a "
          "shorter context",
          op, human_bytes(bytes), human_bytes(static_cast<std::uint64_t>(most)));
  // Always the most, which costs nothing: another thread may be about to launch the same kernel
  // with more than these bytes.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most - static_cast<int>(kStatic)),
        "reserve shared memory");
}

}  // namespace filigree::cuda

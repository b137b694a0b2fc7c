// Turns a failed CUDA call into an Error. For .cpp files only: nvcc does not take the headers that
// filigree/error.h needs.
#pragma once

#include <cuda_runtime_api.h>

#include "filigree/error.h"

namespace filigree::cuda {

// `what` names the operation: "copy to the GPU".
inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // a later call must not report this failure again
  fail("cuda: cannot {}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

}  // namespace filigree::cuda

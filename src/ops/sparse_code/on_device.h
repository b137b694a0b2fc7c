// For kernels that have one element type, f32, on either device.
#pragma once

#include "filigree/device.h"
#include "filigree/tensor.h"

namespace filigree {

// Calls the first function where `x` lies on the CPU, else the second, which takes a float and is
// compiled only where the build has its CUDA side.
template <typename OnCpu, typename OnGpu>
void on_device_of(const Tensor& x, const OnCpu& on_cpu, const OnGpu& on_gpu) {
  if (!x.on_gpu())
    on_cpu();
  else if constexpr (kHasCuda)
    on_gpu(float());
}

}  // namespace filigree

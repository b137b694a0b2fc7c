// Chooses the kernel of a tensor's device and element type.
//
//   dispatch("softmax", x, [&] { cpu::softmax(args(float())); },
//            [&](auto type) { cuda::softmax(args(type)); });
//
// `type` is a float or a Bf16, and args a generic lambda that fills the plain struct of that type
// with data<T>(). The second function is compiled only where the build has its CUDA side.
#pragma once

#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/tensor.h"

namespace filigree {

// Throws Error for a type that has no kernel: bf16 on the CPU is for storage only.
template <typename OnCpu, typename OnGpu>
void dispatch(const char* op, const Tensor& x, const OnCpu& on_cpu, const OnGpu& on_gpu) {
  if (!x.on_gpu()) {
    require(x.dtype() == DType::kF32,
            "{}: {} is a storage format on the CPU; convert the tensor to f32 first", op,
            name_of(x.dtype()));
    on_cpu();
    return;
  }
  if constexpr (kHasCuda) {
    if (x.dtype() == DType::kF32)
      on_gpu(float());
    else if (x.dtype() == DType::kBf16)
      on_gpu(Bf16());
    else
      fail("{}: {} is no type of the GPU's operations; convert the tensor to f32 or bf16", op,
           name_of(x.dtype()));
  }
}

// Throws Error unless both lie on one device.
inline void require_same_device(const char* op, const Tensor& a, const Tensor& b) {
  require(a.device() == b.device(),
          "{}: one input lies on the {} and another on the {}; copy one of them with to()", op,
          name_of(a.device()), name_of(b.device()));
}

}  // namespace filigree

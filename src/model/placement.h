// Where a model computes, and with which element type.
#pragma once

#include "runtime/device.h"
#include "runtime/dtype.h"

namespace filigree {

struct Placement {
  DeviceKind device = DeviceKind::kCpu;
  // Of activations: f32, or bf16 on the GPU, where parameters then have a bf16 copy beside their
  // f32 values.
  DType precision = DType::kF32;
};

// Throws Error when the device is missing or does not compute in that precision.
void check_placement(const Placement& placement);

}  // namespace filigree

// The CUDA devices of this machine; linked only where kHasCuda.
#pragma once

#include <vector>

#include "filigree/device.h"

namespace filigree::cuda {

// Empty without a driver or a GPU. Throws Error on any other failure.
std::vector<DeviceInfo> list_devices();

void wait();  // until all work is done; throws Error when some of it failed
// See filigree/device.h, and which one it is.
void use_device(int index);
int device_in_use();

}  // namespace filigree::cuda

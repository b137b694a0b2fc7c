#include "runtime/cuda/devices_cuda.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

std::atomic<int> chosen_device = 0;

}  // namespace

void use_device(int index) {
  const auto count = static_cast<int>(list_devices().size());
  if (count > 0) chosen_device = index % count;
}

int device_in_use() { return chosen_device; }

std::vector<DeviceInfo> list_devices() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  // A machine without a GPU, without a driver, or with one too old for this build.
  if (counted == cudaErrorNoDevice || counted == cudaErrorInsufficientDriver ||
      counted == cudaErrorStubLibrary) {
    cudaGetLastError();
    return {};
  }
  check(counted, "count the GPUs");
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties = {};
    check(cudaGetDeviceProperties(&properties, i), "read the properties of a GPU");
    DeviceInfo info;
    info.kind = DeviceKind::kCuda;
    info.index = i;
    info.name = properties.name;
    info.memory_bytes = properties.totalGlobalMem;
    info.cores = properties.multiProcessorCount;
    info.compute_major = properties.major;
    info.compute_minor = properties.minor;
    info.instructions = fmt::format("sm_{}{}", properties.major, properties.minor);
    devices.push_back(std::move(info));
  }
  return devices;
}

void wait() { synchronize(); }

}  // namespace filigree::cuda

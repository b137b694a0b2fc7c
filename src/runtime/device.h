// The processors that can do the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/name_table.h"

namespace filigree {

enum class DeviceKind { kCpu, kCuda };

template <>
inline constexpr auto kNames<DeviceKind> =
    std::to_array<Named<DeviceKind>>({{DeviceKind::kCpu, "cpu"}, {DeviceKind::kCuda, "cuda"}});

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;     // among the devices of its kind
  std::string name;  // "AMD EPYC 9B14", "NVIDIA H200"
  std::uint64_t memory_bytes = 0;
  int cores = 0;             // CPU: cores this process may use; CUDA: multiprocessors
  std::string instructions;  // CPU: vector level in use ("avx512"); CUDA: "sm_90"
  int compute_major = 0;     // CUDA: compute capability
  int compute_minor = 0;
};

// The CPU, then the CUDA devices. A build without CUDA, a machine without a driver or without a GPU
// list the CPU alone; any other failure of the driver is an Error.
std::vector<DeviceInfo> list_devices();

// Whether the device can be used; false for a GPU in a build without CUDA or on a machine without
// one.
bool has_device(DeviceKind kind);

// Throws Error, saying what is missing, unless the device can be used.
void require_device(DeviceKind kind);

// Returns when all work given to the device is done; throws Error when some of it failed. The CPU
// never has any left.
void wait_for(DeviceKind kind);

// Puts this process's work on the GPU of that number, counted modulo those that there are; the
// first one otherwise. Must come before anything is done on it. Without a GPU it does nothing.
void use_gpu(int index);

// Cores this process may keep busy: those of its affinity mask, fewer when a container's CPU quota
// allows less. At least 1.
int available_cores();

}  // namespace filigree

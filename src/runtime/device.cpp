#include "filigree/device.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <thread>
#include <utility>

#include "filigree/error.h"
#include "runtime/cpu/simd.h"
#include "runtime/cuda/devices_cuda.h"

namespace filigree {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) break;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "CPU";
}

std::uint64_t installed_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  // More processors than the mask holds.
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Cores' worth of time that the container's quota grants, or 0 when there is none. Inside a
// container its own control group is the root of what is mounted.
double quota_cores() {
  double quota = 0.0;
  double period = 0.0;
  // Version 2, "max 100000" or "150000 100000": reading "max" as a number fails, which means none.
  if (std::ifstream("/sys/fs/cgroup/cpu.max") >> quota >> period && period > 0.0)
    return quota / period;
  // Version 1; a quota of -1 means none.
  if (std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota &&
      std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period && quota > 0.0 &&
      period > 0.0)
    return quota / period;
  return 0.0;
}

}  // namespace

bool has_device(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return true;
  if constexpr (kHasCuda) {
    static const bool found = !cuda::list_devices().empty();
    return found;
  }
  return false;
}

void require_device(DeviceKind kind) {
  if (has_device(kind)) return;
  require(kHasCuda,
          "cuda: this build has no CUDA side; use the CPU, or build with FILIGREE_CUDA=ON "
          "(tools/build cuda)");
  fail(
      "cuda: there is no NVIDIA GPU that this process can use, or its driver is missing or too "
      "old; use the CPU");
}

void wait_for(DeviceKind kind) {
  if constexpr (kHasCuda) {
    if (kind == DeviceKind::kCuda) cuda::wait();
  }
  (void)kind;
}

void use_gpu(int index) {
  require(index >= 0, "cuda: there is no GPU number {}", index);
  if constexpr (kHasCuda) cuda::use_device(index);
}

int available_cores() {
  int cores = affinity_cores();
  const double quota = quota_cores();
  // Rounded up: a quota of 1.5 is better used by two threads than by one.
  if (quota > 0.0 && quota < cores) cores = static_cast<int>(std::ceil(quota));
  return std::max(1, cores);
}

std::vector<DeviceInfo> list_devices() {
  DeviceInfo cpu;
  cpu.kind = DeviceKind::kCpu;
  cpu.name = cpu_name();
  cpu.memory_bytes = installed_memory();
  cpu.cores = available_cores();
  cpu.instructions = name_of(simd_level());
  std::vector<DeviceInfo> devices = {cpu};
  if constexpr (kHasCuda) {
    for (DeviceInfo& device : cuda::list_devices()) devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace filigree

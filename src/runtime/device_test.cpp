// The list of devices is there on every machine and begins with the CPU.
#include "filigree/device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace filigree {
namespace {

TEST(Device, TheCpuComesFirst) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  const DeviceInfo& cpu = devices[0];
  EXPECT_EQ(cpu.kind, DeviceKind::kCpu);
  EXPECT_EQ(cpu.index, 0);
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_GT(cpu.memory_bytes, 0u);
  EXPECT_EQ(cpu.cores, available_cores());
  EXPECT_FALSE(cpu.instructions.empty());
}

TEST(Device, TheOthersAreCudaDevices) {
  const std::vector<DeviceInfo> devices = list_devices();
  if constexpr (!kHasCuda) {
    EXPECT_EQ(devices.size(), 1u);
    return;
  }
  if (devices.size() == 1) GTEST_SKIP() << "no CUDA device on this machine";
  for (std::size_t i = 1; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].kind, DeviceKind::kCuda);
    EXPECT_EQ(devices[i].index, static_cast<int>(i) - 1);
    EXPECT_FALSE(devices[i].name.empty());
    EXPECT_GT(devices[i].memory_bytes, 0u);
    EXPECT_GT(devices[i].cores, 0);
    EXPECT_GT(devices[i].compute_major, 0);
    EXPECT_TRUE(devices[i].instructions.starts_with("sm_"));
  }
}

TEST(Device, HasNames) {
  EXPECT_EQ(name_of(DeviceKind::kCpu), "cpu");
  EXPECT_EQ(name_of(DeviceKind::kCuda), "cuda");
}

TEST(Device, AtLeastOneCoreIsAvailable) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace filigree

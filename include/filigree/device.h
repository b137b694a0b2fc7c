// Where numbers lie and what type they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "filigree/enum_names.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Whether this build has its CUDA side. Dispatch with
//
//   if constexpr (kHasCuda) { ... cuda::kernel(arguments); }
//
// inside an ordinary function: a discarded branch is compiled but not linked, so a CPU build needs
// no stand-ins for the CUDA functions.

#if defined(FILIGREE_HAS_CUDA)
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

// -------------------------------------------------------------------------------------------------
// The processors that can do the work.

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

// -------------------------------------------------------------------------------------------------
// Element types. Arithmetic is in f32; bf16 and f16 are storage formats on the CPU, i32 holds token
// ids. On the GPU activations may be bf16: kernels read and write it and compute in f32.

enum class DType { kF32, kBf16, kF16, kI32 };

template <>
inline constexpr auto kNames<DType> = std::to_array<Named<DType>>(
    {{DType::kF32, "f32"}, {DType::kBf16, "bf16"}, {DType::kF16, "f16"}, {DType::kI32, "i32"}});

// A bf16 as kernels' arguments name it: the upper half of an f32.
struct Bf16 {
  std::uint16_t bits;
};

// The DType of a C++ type.
template <typename T>
inline constexpr DType kDTypeOf = DType::kF32;
template <>
inline constexpr DType kDTypeOf<Bf16> = DType::kBf16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;

constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kI32 ? 4 : 2;
}

// Conversions of `count` elements. To the 16-bit formats they round to nearest, ties to even; NaN
// stays NaN, and values beyond f16's range become infinite.
void bf16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f32_to_bf16(const float* from, std::uint16_t* to, std::size_t count);
void f32_to_f16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace filigree

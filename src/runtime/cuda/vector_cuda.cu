#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/vector_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;

// f(i) for all i < count: eight neighbouring elements a thread, which the compiler turns into wide
// accesses where T allows, and a stride over the rest.
template <typename Function>
__global__ void each(std::int64_t count, Function function) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kPerThread;
  for (std::int64_t base =
           (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPerThread;
       base < count; base += step) {
    if (base + kPerThread <= count) {
      function.eight(base);
    } else {
      for (std::int64_t i = base; i < count; ++i) function.one(i);
    }
  }
}

template <typename Function>
void run(const char* name, std::int64_t count, const Function& function) {
  if (count == 0) return;
  each<<<blocks_for(count, kThreads * kPerThread), kThreads, 0, stream()>>>(count, function);
  check_launch(name);
}

template <typename T>
struct alignas(sizeof(T) * 8 > 16 ? 16 : sizeof(T) * 8) Eight {
  T values[8];
};

template <typename From, typename To, bool kAdd>
struct Apply {
  const From* from;
  To* to;
  bool aligned;

  __device__ void one(std::int64_t i) const {
    const float x = to_float(from[i]);
    to[i] = from_float<To>(kAdd ? to_float(to[i]) + x : x);
  }
  __device__ void eight(std::int64_t base) const {
    if (!aligned) {
      for (int k = 0; k < kPerThread; ++k) one(base + k);
      return;
    }
    const auto in = *reinterpret_cast<const Eight<From>*>(from + base);
    auto* place = reinterpret_cast<Eight<To>*>(to + base);
    Eight<To> out;
    if constexpr (kAdd) out = *place;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float x = to_float(in.values[k]);
      out.values[k] = from_float<To>(kAdd ? to_float(out.values[k]) + x : x);
    }
    *place = out;
  }
};

struct Fill {
  float* to;
  float value;
  __device__ void one(std::int64_t i) const { to[i] = value; }
  __device__ void eight(std::int64_t base) const {
    for (int k = 0; k < kPerThread; ++k) to[base + k] = value;
  }
};

template <bool kAdd, typename From, typename To>
void apply(const char* name, const From* from, To* to, std::int64_t count) {
  const bool aligned = (reinterpret_cast<std::uintptr_t>(from) % 16 == 0) &&
                       (reinterpret_cast<std::uintptr_t>(to) % 16 == 0);
  run(name, count, Apply<From, To, kAdd>{from, to, aligned});
}

}  // namespace

void fill(float* to, float value, std::int64_t count) { run("fill", count, Fill{to, value}); }

void convert(const float* from, Bf16* to, std::int64_t count) {
  apply<false>("convert", from, to, count);
}
void convert(const Bf16* from, float* to, std::int64_t count) {
  apply<false>("convert", from, to, count);
}

void add_into(float* sum, const float* add, std::int64_t count) {
  apply<true>("add_into", add, sum, count);
}
void add_into(float* sum, const Bf16* add, std::int64_t count) {
  apply<true>("add_into", add, sum, count);
}
void add_into(Bf16* sum, const Bf16* add, std::int64_t count) {
  apply<true>("add_into", add, sum, count);
}
void add_into(Bf16* sum, const float* add, std::int64_t count) {
  apply<true>("add_into", add, sum, count);
}

}  // namespace filigree::cuda

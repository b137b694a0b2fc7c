#include "runtime/cpu/simd.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

namespace filigree {
namespace {

SimdLevel processor_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return SimdLevel::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kBaseline;
}

SimdLevel initial_level() {
  const SimdLevel best = processor_level();
  const char* wanted = std::getenv("FILIGREE_SIMD");
  if (wanted == nullptr) return best;
  for (SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (std::string_view(wanted) == name_of(level)) return std::min(level, best);
  return best;
}

std::atomic<SimdLevel>& current_level() {
  static std::atomic<SimdLevel> level{initial_level()};
  return level;
}

}  // namespace

SimdLevel simd_level() { return current_level().load(std::memory_order_relaxed); }

SimdLevel set_simd_level(SimdLevel level) {
  current_level().store(std::min(level, processor_level()));
  return simd_level();
}

const char* name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::kBaseline: return "baseline";
    case SimdLevel::kAvx2: return "avx2";
    case SimdLevel::kAvx512: return "avx512";
  }
  return "unknown";
}

}  // namespace filigree

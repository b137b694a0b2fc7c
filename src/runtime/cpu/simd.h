// Which vector instructions this process uses. Kernels are compiled once per level (see
// simd_targets.h) and chosen at run time, so that one binary runs on every x86-64 and is fast on
// the newer ones.
#pragma once

namespace filigree {

enum class SimdLevel { kBaseline, kAvx2, kAvx512 };

// The best level the processor has, unless set_simd_level() or the environment variable
// FILIGREE_SIMD (baseline, avx2, avx512) asked for a lower one.
SimdLevel simd_level();

// Lowers the level, for tests and for comparing results across processors; returns the level that
// is in force. A level that the processor lacks is not taken.
SimdLevel set_simd_level(SimdLevel level);

const char* name_of(SimdLevel level);

}  // namespace filigree

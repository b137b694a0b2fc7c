// Compiles one kernel body for every vector level. In a .cpp file, after all other includes:
//
//   #define FILIGREE_SIMD_BODY "ops/matmul/gemm_body.inl"
//   #include "runtime/cpu/simd_targets.h"
//
// The body is included three times, inside the namespaces filigree::baseline, ::avx2 and ::avx512,
// with kLanes (floats in a vector), kAccumulatorRows (rows of a register tile three vectors wide)
// and the types and helpers of simd_vector.inl. It must not include anything itself: only functions
// defined between the target pragmas may use the wider instructions, or else an inline function of
// a standard header could be compiled for them and then be picked by the linker for the whole
// program.
//
// FILIGREE_SIMD_CALL(function, arguments...) calls the version for simd_level().
//
// No include guard: each .cpp includes it once for its own body.

#include "runtime/cpu/simd.h"

#if defined(__clang__)
// _Pragma takes one literal, however long.
// clang-format off
#define FILIGREE_TARGET_AVX512 _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c\"))), apply_to = function)")
// clang-format on
#define FILIGREE_TARGET_AVX2 \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,fma,f16c\"))), apply_to = function)")
#define FILIGREE_TARGET_END _Pragma("clang attribute pop")
#else
#define FILIGREE_TARGET_AVX512         \
  _Pragma("GCC push_options") _Pragma( \
      "GCC target(\"avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512\")")
#define FILIGREE_TARGET_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma,f16c\")")
#define FILIGREE_TARGET_END _Pragma("GCC pop_options")
#endif

// GCC notes that vectors wider than the baseline's are passed differently when the wider
// instructions are on. Here such vectors never leave a function that is compiled for them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

// NOLINTBEGIN(readability-duplicate-include): once for every target, that is the purpose.
namespace filigree::baseline {
constexpr int kLanes = 4;
constexpr int kAccumulatorRows = 4;
#include "runtime/cpu/simd_vector.inl"
#include FILIGREE_SIMD_BODY
}  // namespace filigree::baseline

#if defined(__x86_64__)
FILIGREE_TARGET_AVX2
namespace filigree::avx2 {
constexpr int kLanes = 8;
constexpr int kAccumulatorRows = 4;
#include "runtime/cpu/simd_vector.inl"
#include FILIGREE_SIMD_BODY
}  // namespace filigree::avx2
FILIGREE_TARGET_END

FILIGREE_TARGET_AVX512
namespace filigree::avx512 {
constexpr int kLanes = 16;
constexpr int kAccumulatorRows = 8;
#include "runtime/cpu/simd_vector.inl"
#include FILIGREE_SIMD_BODY
}  // namespace filigree::avx512
FILIGREE_TARGET_END

#define FILIGREE_SIMD_CALL(function, ...)                          \
  (::filigree::simd_level() == ::filigree::SimdLevel::kAvx512      \
       ? ::filigree::avx512::function(__VA_ARGS__)                 \
       : (::filigree::simd_level() == ::filigree::SimdLevel::kAvx2 \
              ? ::filigree::avx2::function(__VA_ARGS__)            \
              : ::filigree::baseline::function(__VA_ARGS__)))
#else
#define FILIGREE_SIMD_CALL(function, ...) ::filigree::baseline::function(__VA_ARGS__)
#endif

// NOLINTEND(readability-duplicate-include)
#pragma GCC diagnostic pop

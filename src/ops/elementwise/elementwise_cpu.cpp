#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/elementwise/elementwise_kernels.h"

#define FILIGREE_SIMD_BODY "ops/elementwise/elementwise_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // elements worth waking a thread for

}  // namespace

void binary(const BinaryArgs<>& args) {
  const std::int64_t rows_per_range = kGrain / std::max<std::int64_t>(args.cols, 1) + 1;
  parallel_for(args.rows, rows_per_range, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(binary_rows, args, begin, end);
  });
}

void unary(const UnaryArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(unary_range, args, begin, end);
  });
}

void unary_grad(const UnaryGradArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(unary_grad_range, args, begin, end);
  });
}

}  // namespace filigree::cpu

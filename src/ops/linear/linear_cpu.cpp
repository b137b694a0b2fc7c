#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/linear/linear_kernels.h"

#define FILIGREE_SIMD_BODY "ops/linear/linear_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void add_column_sums(const ColumnSumArgs<>& args) {
  parallel_for(args.cols, 64, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(column_sums_range, args, begin, end);
  });
}

}  // namespace filigree::cpu

#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/rotary/rotary_kernels.h"

#define FILIGREE_SIMD_BODY "ops/rotary/rotary_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void rotary(const RotaryArgs<>& args) {
  const std::int64_t row = args.heads * args.width;
  const std::int64_t grain = (std::int64_t{1} << 14) / (row > 0 ? row : 1) + 1;
  parallel_for(args.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(rotary_rows, args, begin, end);
  });
}

}  // namespace filigree::cpu

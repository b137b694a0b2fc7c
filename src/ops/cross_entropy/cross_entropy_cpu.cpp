#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/cross_entropy/cross_entropy_kernels.h"

#define FILIGREE_SIMD_BODY "ops/cross_entropy/cross_entropy_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void cross_entropy(const CrossEntropyArgs<>& args) {
  parallel_for(args.rows, 4, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(cross_entropy_rows, args, begin, end);
  });
}

void cross_entropy_grad(const CrossEntropyGradArgs<>& args) {
  parallel_for(args.rows, 4, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(cross_entropy_grad_rows, args, begin, end);
  });
}

}  // namespace filigree::cpu

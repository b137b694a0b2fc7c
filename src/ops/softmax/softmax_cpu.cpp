#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/softmax/softmax_kernels.h"

#define FILIGREE_SIMD_BODY "ops/softmax/softmax_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void softmax(const SoftmaxArgs<>& args) {
  parallel_for(args.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(softmax_rows, args, begin, end);
  });
}

void softmax_grad(const SoftmaxGradArgs<>& args) {
  parallel_for(args.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(softmax_grad_rows, args, begin, end);
  });
}

}  // namespace filigree::cpu

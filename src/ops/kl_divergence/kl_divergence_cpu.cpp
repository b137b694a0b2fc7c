#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/kl_divergence/kl_divergence_kernels.h"

#define FILIGREE_SIMD_BODY "ops/kl_divergence/kl_divergence_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void kl_divergence(const KlArgs<>& args) {
  parallel_for(args.rows, 4, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(kl_rows, args, begin, end);
  });
}

void kl_divergence_grad(const KlGradArgs<>& args) {
  parallel_for(args.rows, 4, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(kl_grad_rows, args, begin, end);
  });
}

}  // namespace filigree::cpu

#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/activation/activation_kernels.h"

#define FILIGREE_SIMD_BODY "ops/activation/activation_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // elements worth waking a thread for

}  // namespace

void activate(const ActivationArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(activate_range, args, begin, end);
  });
}

void activation_grad(const ActivationGradArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(activation_grad_range, args, begin, end);
  });
}

void gated_product(const GatedProductArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(gated_product_range, args, begin, end);
  });
}

void gated_product_grad(const GatedProductGradArgs<>& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(gated_product_grad_range, args, begin, end);
  });
}

}  // namespace filigree::cpu

#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/norm/norm_kernels.h"

#define FILIGREE_SIMD_BODY "ops/norm/norm_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void norm(const NormArgs<>& args) {
  parallel_for(args.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(norm_rows, args, begin, end);
  });
}

void norm_grad(const NormGradArgs<>& args) {
  if (args.dx != nullptr)
    parallel_for(args.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      FILIGREE_SIMD_CALL(norm_grad_rows, args, begin, end);
    });
  if (args.dweight != nullptr || args.dbias != nullptr)
    parallel_for(args.width, 64, [&](std::int64_t begin, std::int64_t end) {
      FILIGREE_SIMD_CALL(norm_grad_columns, args, begin, end);
    });
}

}  // namespace filigree::cpu

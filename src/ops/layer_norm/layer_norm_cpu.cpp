#include <cstddef>
#include <cstdint>

#include "filigree/ops/layer_norm/layer_norm_kernels.h"
#include "filigree/runtime/threads.h"

#define FILIGREE_SIMD_BODY "filigree/ops/layer_norm/layer_norm_body.inl"
#include "filigree/runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void layer_norm(const LayerNormArgs<>& args) {
  parallel_for(args.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(layer_norm_rows, args, begin, end);
  });
}

void layer_norm_grad(const LayerNormGradArgs<>& args) {
  if (args.dx != nullptr)
    parallel_for(args.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      FILIGREE_SIMD_CALL(layer_norm_grad_rows, args, begin, end);
    });
  if (args.dweight != nullptr || args.dbias != nullptr)
    parallel_for(args.width, 64, [&](std::int64_t begin, std::int64_t end) {
      FILIGREE_SIMD_CALL(layer_norm_grad_columns, args, begin, end);
    });
}

}  // namespace filigree::cpu

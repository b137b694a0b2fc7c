#include <cstddef>
#include <cstdint>
#include <vector>

#include "filigree/runtime.h"
#include "ops/optimizer/optimizer_kernels.h"

#define FILIGREE_SIMD_BODY "ops/optimizer/optimizer_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

}  // namespace

void adamw(const AdamWArgs& args) {
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(adamw_range, args, begin, end);
  });
}

double sum_of_squares(const float* x, std::int64_t count) {
  // One partial sum a range of fixed length, added in order: no dependence on the thread count.
  std::vector<double> partial(static_cast<std::size_t>((count + kGrain - 1) / kGrain));
  parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    partial[static_cast<std::size_t>(begin / kGrain)] =
        FILIGREE_SIMD_CALL(sum_of_squares_range, x + begin, end - begin);
  });
  double total = 0.0;
  for (double value : partial) total += value;
  return total;
}

}  // namespace filigree::cpu

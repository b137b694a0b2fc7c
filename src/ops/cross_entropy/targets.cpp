#include "ops/cross_entropy/targets.h"

#include "filigree/error.h"
#include "filigree/ops.h"

namespace filigree {

std::int64_t count_targets(const char* op, const Tensor& targets, std::int64_t rows,
                           std::int64_t vocabulary) {
  require(targets.elements() == rows, "{}: {} targets for {} predictions", op, targets.elements(),
          rows);
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int32_t target = targets.i32()[i];
    if (target == kIgnoredTarget) continue;
    if (target < 0 || target >= vocabulary)
      fail("{}: target {} at position {} is not within the vocabulary of {}", op, target, i,
           vocabulary);
    ++counted;
  }
  require(counted > 0, "{}: no target to predict among {} positions", op, rows);
  return counted;
}

}  // namespace filigree

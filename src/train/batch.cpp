#include "train/batch.h"

#include <algorithm>

#include "ops/cross_entropy/cross_entropy.h"

namespace filigree {

std::int64_t counted_targets(const Batch& batch) {
  const std::int32_t* targets = batch.targets.i32();
  const std::int64_t all = batch.targets.elements();
  return all - std::count(targets, targets + all, kIgnoredTarget);
}

}  // namespace filigree

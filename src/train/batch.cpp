#include <algorithm>

#include "filigree/ops.h"
#include "filigree/train.h"

namespace filigree {

std::int64_t counted_targets(const Batch& batch) {
  const std::int32_t* targets = batch.targets.i32();
  const std::int64_t all = batch.targets.elements();
  return all - std::count(targets, targets + all, kIgnoredTarget);
}

}  // namespace filigree

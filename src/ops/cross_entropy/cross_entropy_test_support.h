// Targets for tests of the loss, some of them ignored.
#pragma once

#include "filigree/ops.h"
#include "filigree/random.h"

namespace filigree {

inline Tensor targets_with_ignored(std::int64_t rows, std::int64_t vocabulary) {
  Random random(3);
  Tensor targets = Tensor::empty({rows}, DType::kI32);
  for (std::int64_t i = 0; i < rows; ++i)
    targets.mutable_i32()[i] =
        i % 5 == 3
            ? kIgnoredTarget
            : static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary)));
  return targets;
}

}  // namespace filigree

// What all losses of next-token predictions ask of their targets.
#pragma once

#include <cstdint>

#include "filigree/tensor.h"

namespace filigree {

// The number of targets that are not ignored. Throws Error unless there is a target a row, each
// ignored or within the vocabulary, and one that counts. `op` names the operation in messages.
std::int64_t count_targets(const char* op, const Tensor& targets, std::int64_t rows,
                           std::int64_t vocabulary);

}  // namespace filigree

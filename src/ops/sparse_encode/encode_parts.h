#pragma once

#include "filigree/ops/sparse_encode/sparse_encode.h"

namespace filigree {

// Throws Error for shapes that do not fit, or options that make no sense.
void check_encode(const Variable& x, const EncoderWeights& encoder,
                  const SparseEncodeOptions& options);

// Most entries of batch-top-k.
std::int64_t room_of_batch(std::int64_t rows, std::int64_t features,
                           const SparseEncodeOptions& options);

}  // namespace filigree

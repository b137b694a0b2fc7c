// What active features write: sums of decoder rows over the active features of each token alone.
#pragma once

#include <cstdint>
#include <span>

#include "filigree/ops.h"

namespace filigree {

// Features of one place that write to `reach` targets from `first` on: feature f adds its value
// times decoder[f, j] to target first + j.
struct DecoderSource {
  SparseCode code;
  Variable decoder;  // f32 [features, reach * width]
  std::int64_t first = 0;
  std::int64_t reach = 1;
};

// -> f32 [targets, rows, width]: the sum over all sources, in their order. Gradients flow to the
// codes' values and the decoders. With bf16 the products read the decoders' rounded copies, on the
// GPU only. Throws Error for shapes that do not fit.
Variable sparse_decode(std::span<const DecoderSource> sources, std::int64_t targets,
                       std::int64_t width, DType precision = DType::kF32);

}  // namespace filigree

// Sums over one axis in a fixed order, for the kernels that need them.
#pragma once

#include <cstdint>

#include "filigree/device.h"

namespace filigree::cuda {

// out[o, i] (+)= factor * sum_k x[o, k, i] over [outer, extent, inner], in double precision. The
// order depends on the extents alone.
void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const float* x, float* out, bool add = false);
void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const Bf16* x, float* out, bool add = false);
void sum_axis(std::int64_t outer, std::int64_t extent, std::int64_t inner, double factor,
              const Bf16* x, Bf16* out, bool add = false);

}  // namespace filigree::cuda

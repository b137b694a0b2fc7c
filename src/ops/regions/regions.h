// Regions of a tensor overwritten with, or increased by, sums of regions of other tensors: what
// interventions on many runs of one batch do, each run with places and values of its own.
//
//   to[place] = (keep ? to[place] : 0) + sum over the region's sources of factor * from[place']
//
// The sources are added in their order, so the bits depend on neither threads nor device timing.
#pragma once

#include <cstdint>
#include <vector>

#include "filigree/tensor.h"
#include "ops/regions/regions_kernels.h"

namespace filigree {

// Blocks as large as the region's, in one of the tensors that write_regions is given.
struct RegionSource {
  std::int64_t tensor = 0;
  std::int64_t offset = 0, step = 0;
  float factor = 1.0f;
};

// Which regions are written and from what; holds no values, so it is small.
struct RegionList {
  std::vector<Region> regions = {};
  std::vector<RegionSource> sources = {};
  // Regions may share elements only when this is set, and must then write the same values there.
  bool overlap = false;

  bool empty() const { return regions.empty(); }
  // The region takes the sources that are added until the next one begins; without any it is zero,
  // or stays.
  void begin(std::int64_t to, std::int64_t count, std::int64_t blocks, std::int64_t step,
             bool keep = false);
  void add(const RegionSource& source);
};

// `to` and the sources lie on one device; on the GPU each side may be f32 or bf16, all sources
// alike. Not differentiable. Throws Error for regions outside their tensor.
void write_regions(Tensor& to, const std::vector<Tensor>& from, const RegionList& list);

}  // namespace filigree

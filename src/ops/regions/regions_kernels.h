#pragma once

#include <cstdint>

namespace filigree {

// `blocks` blocks of `count` neighbouring elements, `step` elements from one to the next.
struct Region {
  std::int64_t to = 0;  // the first element
  std::int64_t count = 0, blocks = 1, step = 0;
  std::int64_t first_source = 0, sources = 0;  // those of the list that are summed here
  std::int64_t keep = 0;                       // not 0: added to what is there
};

// The same block of another tensor, from its first element on.
template <typename From>
struct RegionPart {
  const From* from = nullptr;
  std::int64_t step = 0;
  float factor = 1.0f;
};

template <typename To = float, typename From = float>
struct RegionsArgs {
  std::int64_t count = 0;
  std::int64_t largest = 0;  // elements of the largest region
  const Region* regions = nullptr;
  const RegionPart<From>* parts = nullptr;
  To* to = nullptr;
  bool overlap = false;  // some regions write the same elements
};

namespace cpu {
void write_regions(const RegionsArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename To, typename From>
void write_regions(const RegionsArgs<To, From>& args);
}  // namespace cuda
}  // namespace filigree

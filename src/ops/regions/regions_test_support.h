// Lists of regions for the tests of both devices.
#pragma once

#include "filigree/random.h"
#include "ops/regions/regions.h"

namespace filigree {

struct RegionsCase {
  std::int64_t elements = 0;               // of the tensor that is written
  std::vector<std::int64_t> sources = {};  // elements of each source
  RegionList list = {};
};

// Regions one after the other with gaps, of random sizes, steps and numbers of sources.
inline RegionsCase random_regions(std::uint64_t seed, std::int64_t regions, std::int64_t count,
                                  std::int64_t blocks) {
  Random random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
  };
  RegionsCase c;
  c.sources = {3 * count * blocks, 5 * count * blocks};
  for (std::int64_t r = 0; r < regions; ++r) {
    const std::int64_t n = 1 + below(count), times = 1 + below(blocks), step = n + below(3);
    c.list.begin(c.elements + below(4), n, times, step, below(2) == 0);
    const std::int64_t listed = below(4);
    for (std::int64_t s = 0; s < listed; ++s) {
      const std::int64_t tensor = below(2), from_step = below(2) * n;
      const std::int64_t room =
          c.sources[static_cast<std::size_t>(tensor)] - (times - 1) * from_step - n;
      const float factors[] = {1.0f, -1.0f, 0.25f};
      c.list.add({tensor, below(room + 1), from_step, factors[below(3)]});
    }
    c.elements += 4 + times * step;
  }
  return c;
}

// Equally large regions, each the sum of many sources, some of which they share.
inline RegionsCase many_sources(std::int64_t regions, std::int64_t count, std::int64_t blocks) {
  RegionsCase c;
  c.sources = {blocks * 4 * count, blocks * 4 * count};
  for (std::int64_t r = 0; r < regions; ++r) {
    c.list.begin(r * count * blocks, count, blocks, count, r % 2 == 0);
    for (std::int64_t s = 0; s < 3 + r % 6; ++s)
      c.list.add({s % 2, (r + s) % 4 * count, 4 * count, s % 3 == 0 ? -1.0f : 1.0f});
  }
  c.elements = regions * count * blocks;
  return c;
}

}  // namespace filigree

#include <algorithm>

#include "filigree/runtime.h"
#include "ops/regions/regions_kernels.h"

namespace filigree::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 13;  // elements that are worth a thread's while

void write_blocks(const RegionsArgs<>& args, const Region& region, std::int64_t begin,
                  std::int64_t end) {
  const RegionPart<float>* parts = args.parts + region.first_source;
  for (std::int64_t block = begin; block < end; ++block) {
    float* out = args.to + region.to + block * region.step;
    std::int64_t next = 0;
    if (region.keep == 0) {
      if (region.sources == 0)
        std::fill_n(out, region.count, 0.0f);
      else if (parts[0].factor == 1.0f)
        std::copy_n(parts[0].from + block * parts[0].step, region.count, out);
      else
        for (std::int64_t i = 0; i < region.count; ++i)
          out[i] = parts[0].factor * parts[0].from[block * parts[0].step + i];
      next = 1;
    }
    for (; next < region.sources; ++next) {
      const float* x = parts[next].from + block * parts[next].step;
      const float factor = parts[next].factor;
      for (std::int64_t i = 0; i < region.count; ++i) out[i] += factor * x[i];
    }
  }
}

// Whether sums of many sources, as many blocks each, are better taken block by block: regions then
// find the blocks that they share in the cache.
bool by_blocks(const RegionsArgs<>& args) {
  std::int64_t sources = 0;
  for (std::int64_t i = 0; i < args.count; ++i) {
    if (args.regions[i].blocks != args.regions[0].blocks) return false;
    sources += args.regions[i].sources;
  }
  return args.regions[0].blocks > num_threads() && sources > 2 * args.count;
}

}  // namespace

void write_regions(const RegionsArgs<>& args) {
  const auto write = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      write_blocks(args, args.regions[i], 0, args.regions[i].blocks);
  };
  if (args.overlap) {
    write(0, args.count);
  } else if (by_blocks(args)) {
    parallel_for(args.regions[0].blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < args.count; ++i) write_blocks(args, args.regions[i], begin, end);
    });
  } else if (args.count >= 4 * num_threads()) {
    parallel_for(args.count, std::max<std::int64_t>(kGrain / args.largest, 1), write);
  } else {  // a few large ones
    for (std::int64_t i = 0; i < args.count; ++i) {
      const Region& region = args.regions[i];
      const std::int64_t work = region.count * std::max<std::int64_t>(region.sources, 1);
      parallel_for(
          region.blocks, std::max<std::int64_t>(kGrain / work, 1),
          [&](std::int64_t begin, std::int64_t end) { write_blocks(args, region, begin, end); });
    }
  }
}

}  // namespace filigree::cpu

// A row of blocks a region; each thread sums the sources of its elements in their order.

#include "ops/regions/regions_kernels.h"
#include "runtime/cuda/device_cuda.cuh"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;  // elements a thread, where the regions are equally large

template <typename To, typename From>
__global__ void write(RegionsArgs<To, From> args) {
  const Region region = args.regions[blockIdx.x];
  const RegionPart<From>* parts = args.parts + region.first_source;
  const unsigned count = static_cast<unsigned>(region.count);
  const unsigned all = count * static_cast<unsigned>(region.blocks);
  const unsigned threads = gridDim.y * kThreads;
  // No overflow: `all` is below 2^31 and the threads of a row are far fewer.
  for (unsigned i = blockIdx.y * kThreads + threadIdx.x; i < all; i += threads) {
    const std::int64_t block = i / count, at = i % count;
    To* out = args.to + region.to + block * region.step + at;
    float value = region.keep != 0 ? to_float(*out) : 0.0f;
    for (std::int64_t s = 0; s < region.sources; ++s)
      value += parts[s].factor * to_float(parts[s].from[block * parts[s].step + at]);
    *out = from_float<To>(value);
  }
}

}  // namespace

template <typename To, typename From>
void write_regions(const RegionsArgs<To, From>& args) {
  if (args.count == 0 || args.largest == 0) return;
  const dim3 grid(static_cast<unsigned>(args.count),
                  blocks_for(args.largest, kThreads * kEach, 1024));
  write<<<grid, kThreads, 0, stream()>>>(args);
  check_launch("write_regions");
}

template void write_regions(const RegionsArgs<float, float>&);
template void write_regions(const RegionsArgs<float, Bf16>&);
template void write_regions(const RegionsArgs<Bf16, float>&);
template void write_regions(const RegionsArgs<Bf16, Bf16>&);

}  // namespace filigree::cuda

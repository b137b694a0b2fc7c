#include "ops/layout/layout_kernels.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

struct alignas(16) Sixteen {
  std::uint32_t words[4];
};

// All extents and steps in units.
template <typename Unit>
__global__ void copy_units(std::int64_t count, std::int64_t block, const Unit* from,
                           std::int64_t from_step, Unit* to, std::int64_t to_step) {
  const std::int64_t all = count * block;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < all;
       i += threads)
    to[i / block * to_step + i % block] = from[i / block * from_step + i % block];
}

template <typename Unit>
__global__ void transpose_units(TransposeArgs args, std::int64_t inner) {
  const Unit* from = reinterpret_cast<const Unit*>(args.from);
  Unit* to = reinterpret_cast<Unit*>(args.to);
  const std::int64_t all = args.outer * args.A * args.middle * args.B * inner;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < all;
       at += threads) {
    // `at` is a place in the result [outer, B, middle, A, inner].
    const std::int64_t c = at % inner;
    std::int64_t rest = at / inner;
    const std::int64_t i = rest % args.A;
    rest /= args.A;
    const std::int64_t m = rest % args.middle;
    rest /= args.middle;
    const std::int64_t j = rest % args.B, o = rest / args.B;
    to[at] = from[(((o * args.A + i) * args.middle + m) * args.B + j) * inner + c];
  }
}

// The largest unit that all addresses, extents and steps are multiples of; types have 2 bytes at
// least.
std::int64_t unit_of(std::uintptr_t bits) {
  if (bits % 16 == 0) return 16;
  return bits % 4 == 0 ? 4 : 2;
}

template <typename Unit>
void copy_as(const CopyBlocksArgs& a) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Unit));
  copy_units<<<blocks_for(a.count * a.block / kSize, kThreads * 4), kThreads, 0, stream()>>>(
      a.count, a.block / kSize, reinterpret_cast<const Unit*>(a.from), a.from_step / kSize,
      reinterpret_cast<Unit*>(a.to), a.to_step / kSize);
}

template <typename Unit>
void transpose_as(const TransposeArgs& a) {
  const std::int64_t inner = a.inner / static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t all = a.outer * a.A * a.middle * a.B * inner;
  transpose_units<Unit><<<blocks_for(all, kThreads * 4), kThreads, 0, stream()>>>(a, inner);
}

}  // namespace

void copy_blocks(const CopyBlocksArgs& args) {
  if (args.count == 0 || args.block == 0) return;
  const std::uintptr_t bits =
      reinterpret_cast<std::uintptr_t>(args.from) | reinterpret_cast<std::uintptr_t>(args.to) |
      static_cast<std::uintptr_t>(args.block | args.from_step | args.to_step);
  switch (unit_of(bits)) {
    case 16: copy_as<Sixteen>(args); break;
    case 4: copy_as<std::uint32_t>(args); break;
    default: copy_as<std::uint16_t>(args);
  }
  check_launch("copy_blocks");
}

void transpose(const TransposeArgs& args) {
  if (args.outer * args.A * args.middle * args.B * args.inner == 0) return;
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(args.from) |
                              reinterpret_cast<std::uintptr_t>(args.to) |
                              static_cast<std::uintptr_t>(args.inner);
  switch (unit_of(bits)) {
    case 16: transpose_as<Sixteen>(args); break;
    case 4: transpose_as<std::uint32_t>(args); break;
    default: transpose_as<std::uint16_t>(args);
  }
  check_launch("transpose");
}

}  // namespace filigree::cuda

#include <cstring>

#include "ops/layout/layout_kernels.h"

namespace filigree::cpu {

void copy_blocks(const CopyBlocksArgs& args) {
  for (std::int64_t i = 0; i < args.count; ++i)
    std::memcpy(args.to + i * args.to_step, args.from + i * args.from_step,
                static_cast<std::size_t>(args.block));
}

void transpose(const TransposeArgs& a) {
  std::byte* to = a.to;
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (std::int64_t j = 0; j < a.B; ++j)
      for (std::int64_t m = 0; m < a.middle; ++m)
        for (std::int64_t i = 0; i < a.A; ++i) {
          std::memcpy(to, a.from + (((o * a.A + i) * a.middle + m) * a.B + j) * a.inner,
                      static_cast<std::size_t>(a.inner));
          to += a.inner;
        }
}

}  // namespace filigree::cpu

#include <cstring>

#include "filigree/runtime.h"
#include "ops/embedding/embedding_kernels.h"

namespace filigree::cpu {

void scaled_rows(const ScaledRowsArgs<float>& args) {
  parallel_for(args.count, 64, [&](std::int64_t begin, std::int64_t end) {
    for (int t = 0; t < args.tables; ++t)
      for (std::int64_t i = begin; i < end; ++i) {
        float* to = args.to + (t * args.count + i) * args.width;
        const std::int32_t id = args.ids[i];
        for (std::int64_t c = 0; c < args.width; ++c)
          to[c] = id < 0 ? 0.0f : args.factor[t] * args.table[t][id * args.width + c];
      }
  });
}

void gather_rows(const RowsArgs<float, float>& args) {
  parallel_for(args.count, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(args.to + i * args.width, args.from + args.ids[i] * args.width,
                  static_cast<std::size_t>(args.width) * sizeof(float));
  });
}

void scatter_add_rows(const RowsArgs<float, float>& args) {
  // Threads share the columns, not the rows: equal ids are then added in their order of occurrence.
  parallel_for(args.width, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < args.count; ++i) {
      const float* from = args.from + i * args.width;
      float* to = args.to + args.ids[i] * args.width;
      for (std::int64_t c = begin; c < end; ++c) to[c] += from[c];
    }
  });
}

}  // namespace filigree::cpu

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/sparse_code/sparse_code_kernels.h"

#define FILIGREE_SIMD_BODY "ops/sparse_code/sparse_code_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {
namespace {

// Rows and features a range: the part of one target that they read and write fits a cache.
constexpr std::int64_t kGrain = 64;

}  // namespace

void mix_rows(const MixRowsArgs<>& args) {
  parallel_for(args.rows, 4 * kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(mix_rows_range, args, begin, end);
  });
}

void gather_rows_by_feature(const GatherRowsArgs<>& args) {
  parallel_for(args.features, kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(gather_rows_range, args, begin, end);
  });
}

void dot_rows(const DotRowsArgs& args) {
  parallel_for(args.rows, 4 * kGrain, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(dot_rows_range, args, begin, end);
  });
}

void code_by_feature(const CodeByFeatureArgs& args) {
  for (std::int64_t f = 0; f <= args.features; ++f) args.feature_begin[f] = 0;
  for (std::int64_t p = 0; p < args.entries; ++p) ++args.feature_begin[args.feature[p] + 1];
  for (std::int64_t f = 0; f < args.features; ++f)
    args.feature_begin[f + 1] += args.feature_begin[f];
  // Each begin runs on to the next one's place while it is filled, and back by one feature.
  for (std::int64_t r = 0; r < args.rows; ++r)
    for (std::int32_t p = args.begin[r]; p < args.begin[r + 1]; ++p) {
      const std::int32_t q = args.feature_begin[args.feature[p]]++;
      args.row[q] = static_cast<std::int32_t>(r);
      args.entry[q] = p;
    }
  for (std::int64_t f = args.features; f > 0; --f)
    args.feature_begin[f] = args.feature_begin[f - 1];
  args.feature_begin[0] = 0;
}

void saturation(const SaturationArgs& args) {
  parallel_for(args.entries, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      args.y[p] = std::tanh(args.c * args.value[p] * args.norm[args.feature[p]]);
  });
}

void saturation_grad(const SaturationGradArgs& args) {
  parallel_for(args.entries, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const float slope = args.dy[p] * (1.0f - args.y[p] * args.y[p]) * args.c;
      args.dvalue[p] = slope * args.norm[args.feature[p]];
      args.slope[p] = slope * args.value[p];
    }
  });
}

void sum_entries(const SumEntriesArgs& args) {
  parallel_for(args.features, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t f = begin; f < end; ++f) {
      double total = 0.0;
      for (std::int32_t q = args.begin[f]; q < args.begin[f + 1]; ++q)
        total += static_cast<double>(args.coefficient[args.entry[q]]);
      args.to[f] += args.factor * static_cast<float>(total);
    }
  });
}

}  // namespace filigree::cpu

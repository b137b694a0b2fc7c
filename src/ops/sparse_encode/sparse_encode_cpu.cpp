#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "filigree/runtime.h"
#include "ops/sparse_encode/sparse_encode_kernels.h"

#define FILIGREE_SIMD_BODY "ops/sparse_encode/sparse_encode_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {
namespace {

constexpr std::int64_t kRows = 32, kColumns = 256;

}  // namespace

void count_selected(const SelectArgs& args, std::int32_t* counts) {
  parallel_for(args.rows, kRows, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(count_rows, args, counts, begin, end);
  });
}

void fill_selected(const FillArgs& args) {
  parallel_for(args.select.rows, kRows, [&](std::int64_t begin, std::int64_t end) {
    FILIGREE_SIMD_CALL(fill_rows, args, begin, end);
  });
}

void largest_of_rows(const LargestArgs& args) {
  parallel_for(args.rows, kRows, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> list(static_cast<std::size_t>(args.k));
    FILIGREE_SIMD_CALL(largest_rows, args, list.data(), begin, end);
  });
}

void count_digits(const DigitArgs& args) {
  // Whole numbers: their sum does not depend on the order, so that each range counts for itself.
  const std::int64_t digits = std::int64_t{1} << args.digit_bits;
  const std::int64_t grain = (args.rows + 15) / 16;
  const std::int64_t ranges = grain > 0 ? (args.rows + grain - 1) / grain : 0;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(ranges * digits), 0);
  const int above = args.shift + args.digit_bits;
  parallel_for(args.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t* counts = parts.data() + begin / grain * digits;
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t f = 0; f < args.features; ++f) {
        const float v = args.h[r * args.features + f] + args.bias[f];
        if (!(v > 0.0f)) continue;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &v, sizeof(bits));
        if (above < 32 && bits >> above != args.prefix) continue;
        ++counts[(bits >> args.shift) & static_cast<std::uint32_t>(digits - 1)];
      }
  });
  for (std::int64_t i = 0; i < digits; ++i) {
    args.counts[i] = 0;
    for (std::int64_t range = 0; range < ranges; ++range)
      args.counts[i] += parts[static_cast<std::size_t>(range * digits + i)];
  }
}

void below_sums(const BelowArgs& args) {
  parallel_for(args.features, kColumns, [&](std::int64_t begin, std::int64_t end) {
    double totals[kColumns];
    float part[kColumns];
    FILIGREE_SIMD_CALL(below_columns, args, totals, part, begin, end);
  });
}

void entry_grad(const EntryGradArgs& args) {
  parallel_for(args.entries, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const float g = args.grad[p];
      const float theta = args.threshold != nullptr ? args.threshold[args.feature[p]] : 0.0f;
      const float gap = args.pre != nullptr ? args.pre[p] - theta : args.value[p];
      args.passed[p] = gap > 0.0f ? g : 0.0f;
      if (args.step == nullptr) continue;
      const bool near = gap < 0.5f * args.bandwidth && gap > -0.5f * args.bandwidth;
      args.step[p] = near ? -(theta / args.bandwidth) * g : 0.0f;
    }
  });
}

void below_grad(const BelowGradArgs& args) {
  parallel_for(args.features, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t f = begin; f < end; ++f) {
      std::int64_t active = 0;
      for (std::int32_t q = args.begin[f]; q < args.begin[f + 1]; ++q) {
        const bool on = args.value[args.entry[q]] > 0.0f;
        active += on ? 1 : 0;
        args.coefficient[args.entry[q]] = on ? args.grad[f] : 0.0f;
      }
      const float rest = args.grad[f] * static_cast<float>(args.rows - active);
      if (args.dbias != nullptr) args.dbias[f] -= rest;
      if (args.dthreshold != nullptr) args.dthreshold[f] += rest;
    }
  });
}

}  // namespace filigree::cpu

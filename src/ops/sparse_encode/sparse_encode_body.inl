// Kernels of sparse_encode_cpu.cpp, compiled once per vector level. Few values pass, so that whole
// blocks of values are compared at once and looked into only where one does.

constexpr std::int64_t kBlock = 32;

// Calls found(f, v) for the features of a row above their bounds, in ascending order. Of a row
// bound, which stands for all features, `bounds` is null.
template <typename Found>
[[gnu::always_inline]] inline void for_selected(const float* h, const float* bias,
                                                const float* bounds, float bound,
                                                std::int64_t features, const Found& found) {
  std::int64_t f = 0;
  for (; f + kBlock <= features; f += kBlock) {
    std::int32_t any = 0;
    if (bounds != nullptr) {
      for (std::int64_t j = f; j < f + kBlock; ++j) any |= h[j] + bias[j] > bounds[j] ? 1 : 0;
    } else {
      for (std::int64_t j = f; j < f + kBlock; ++j) any |= h[j] + bias[j] > bound ? 1 : 0;
    }
    if (any == 0) continue;
    for (std::int64_t j = f; j < f + kBlock; ++j) {
      const float v = h[j] + bias[j];
      if (v > (bounds != nullptr ? bounds[j] : bound)) found(j, v);
    }
  }
  for (; f < features; ++f) {
    const float v = h[f] + bias[f];
    if (v > (bounds != nullptr ? bounds[f] : bound)) found(f, v);
  }
}

inline void count_rows(const SelectArgs& args, std::int32_t* counts, std::int64_t begin,
                       std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    std::int32_t count = 0;
    const float bound = args.row_bound != nullptr ? args.row_bound[r] : args.bound;
    for_selected(args.h + r * args.features, args.bias, args.feature_bound, bound, args.features,
                 [&](std::int64_t, float) { ++count; });
    counts[r] = count;
  }
}

inline void fill_rows(const FillArgs& args, std::int64_t begin, std::int64_t end) {
  const SelectArgs& select = args.select;
  for (std::int64_t r = begin; r < end; ++r) {
    std::int32_t p = args.begin[r];
    const float bound = select.row_bound != nullptr ? select.row_bound[r] : select.bound;
    for_selected(select.h + r * select.features, select.bias, select.feature_bound, bound,
                 select.features, [&](std::int64_t f, float v) {
                   args.feature[p] = static_cast<std::int32_t>(f);
                   args.value[p] = args.threshold == nullptr || v > args.threshold[f] ? v : 0.0f;
                   if (args.pre != nullptr) args.pre[p] = v;
                   ++p;
                 });
  }
}

// The k largest so far in falling order; a value above the last one takes its place.
inline void largest_rows(const LargestArgs& args, float* list, std::int64_t begin,
                         std::int64_t end) {
  const std::int64_t k = args.k;
  for (std::int64_t r = begin; r < end; ++r) {
    const float* h = args.h + r * args.features;
    for (std::int64_t i = 0; i < k; ++i) list[i] = -__builtin_inff();
    const auto insert = [&](float v) {
      std::int64_t i = k - 1;
      for (; i > 0 && list[i - 1] < v; --i) list[i] = list[i - 1];
      list[i] = v;
    };
    std::int64_t f = 0;
    for (; f + kBlock <= args.features; f += kBlock) {
      const float last = list[k - 1];
      std::int32_t any = 0;
      for (std::int64_t j = f; j < f + kBlock; ++j) any |= h[j] + args.bias[j] > last ? 1 : 0;
      if (any == 0) continue;
      for (std::int64_t j = f; j < f + kBlock; ++j)
        if (const float v = h[j] + args.bias[j]; v > list[k - 1]) insert(v);
    }
    for (; f < args.features; ++f)
      if (const float v = h[f] + args.bias[f]; v > list[k - 1]) insert(v);
    args.kth[r] = list[k - 1];
    if (args.largest != nullptr)
      for (std::int64_t i = 0; i < k; ++i) args.largest[r * k + i] = list[i];
  }
}

// Features [begin, end) of all rows; in parts of 256 rows, since a long sum in f32 loses digits.
inline void below_columns(const BelowArgs& args, double* totals, float* part, std::int64_t begin,
                          std::int64_t end) {
  for (std::int64_t f = begin; f < end; ++f) totals[f - begin] = 0.0;
  for (std::int64_t first = 0; first < args.rows; first += 256) {
    const std::int64_t last = first + 256 < args.rows ? first + 256 : args.rows;
    for (std::int64_t f = begin; f < end; ++f) part[f - begin] = 0.0f;
    for (std::int64_t r = first; r < last; ++r) {
      const float* h = args.h + r * args.features;
      for (std::int64_t f = begin; f < end; ++f) {
        const float theta = args.threshold != nullptr ? args.threshold[f] : 0.0f;
        const float gap = theta - (h[f] + args.bias[f]);
        part[f - begin] += gap > 0.0f ? gap : 0.0f;
      }
    }
    for (std::int64_t f = begin; f < end; ++f)
      totals[f - begin] += static_cast<double>(part[f - begin]);
  }
  for (std::int64_t f = begin; f < end; ++f) args.sums[f] = static_cast<float>(totals[f - begin]);
}

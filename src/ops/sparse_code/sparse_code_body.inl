// Kernels of sparse_code_cpu.cpp, compiled once per vector level.

// to += coefficient * from
[[gnu::always_inline]] inline void add_scaled(float* to, const float* from, float coefficient,
                                              std::int64_t width) {
  const Vec factor = broadcast(coefficient);
  std::int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) store(to + c, load(to + c) + factor * load(from + c));
  for (; c < width; ++c) to[c] += coefficient * from[c];
}

inline void mix_rows_range(const MixRowsArgs<>& args, std::int64_t begin, std::int64_t end) {
  // One target after the other: its part of `from` then stays in the cache.
  for (std::int64_t m = 0; m < args.targets; ++m)
    for (std::int64_t r = begin; r < end; ++r) {
      float* to = args.to.data + m * args.to.target_step + r * args.to.row_step;
      for (std::int32_t p = args.begin[r]; p < args.begin[r + 1]; ++p)
        if (args.coefficient[p] != 0.0f)
          add_scaled(
              to, args.from.data + m * args.from.target_step + args.feature[p] * args.from.row_step,
              args.coefficient[p], args.width);
    }
}

inline void gather_rows_range(const GatherRowsArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t m = 0; m < args.targets; ++m)
    for (std::int64_t f = begin; f < end; ++f) {
      float* to = args.to.data + m * args.to.target_step + f * args.to.row_step;
      for (std::int32_t q = args.begin[f]; q < args.begin[f + 1]; ++q) {
        const float coefficient = args.coefficient[args.entry[q]];
        if (coefficient != 0.0f)
          add_scaled(to,
                     args.from.data + m * args.from.target_step + args.row[q] * args.from.row_step,
                     coefficient, args.width);
      }
    }
}

inline void dot_rows_range(const DotRowsArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t m = 0; m < args.targets; ++m)
    for (std::int64_t r = begin; r < end; ++r) {
      const float* y = args.of_rows.data + m * args.of_rows.target_step + r * args.of_rows.row_step;
      for (std::int32_t p = args.begin[r]; p < args.begin[r + 1]; ++p) {
        const float* w = args.of_features.data + m * args.of_features.target_step +
                         args.feature[p] * args.of_features.row_step;
        Vec total[2] = {Vec{}, Vec{}};
        std::int64_t c = 0;
        for (; c + 2 * kLanes <= args.width; c += 2 * kLanes) {
          total[0] += load(w + c) * load(y + c);
          total[1] += load(w + c + kLanes) * load(y + c + kLanes);
        }
        float product = sum(total[0] + total[1]);
        for (; c < args.width; ++c) product += w[c] * y[c];
        args.to[p] = m == 0 ? product : args.to[p] + product;
      }
    }
}

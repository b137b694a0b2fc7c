// Kernels of linear_cpu.cpp, compiled once per vector level.

inline void column_sums_range(const ColumnSumArgs<>& args, std::int64_t begin, std::int64_t end) {
  // Four partial sums a column keep the rounding error small over thousands of rows and do not
  // depend on how the columns are cut.
  for (std::int64_t c0 = begin; c0 < end; c0 += 64) {
    const std::int64_t width = end - c0 < 64 ? end - c0 : 64;
    float partial[4][64] = {};
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const float* x = args.x + r * args.cols + c0;
      float* sums = partial[r & 3];
      for (std::int64_t c = 0; c < width; ++c) sums[c] += x[c];
    }
    for (std::int64_t c = 0; c < width; ++c)
      args.sums[c0 + c] += (partial[0][c] + partial[1][c]) + (partial[2][c] + partial[3][c]);
  }
}

// Packing, epilogues and blocking of gemm_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_activation.inl"
#include "runtime/cpu/simd_tile.inl"

// Transposes four rows of `depth` contiguous floats into packed[k * width + 0..3].
inline void pack_four_rows(const float* const row[4], std::int64_t depth, std::int64_t width,
                           float* packed) {
  typedef float Quad __attribute__((vector_size(16)));
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    Quad q[4];
    for (int i = 0; i < 4; ++i) __builtin_memcpy(&q[i], row[i] + k, sizeof(Quad));
    const Quad low01 = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
    const Quad high01 = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
    const Quad low23 = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
    const Quad high23 = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
    const Quad column[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                            __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                            __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                            __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i)
      __builtin_memcpy(packed + (k + i) * width, &column[i], sizeof(Quad));
  }
  for (; k < depth; ++k)
    for (int i = 0; i < 4; ++i) packed[k * width + i] = row[i][k];
}

// Copies rows x depth of a matrix with strides (row_stride, depth_stride) to packed[k * width + r],
// zero for r in [rows, width).
inline void pack_panel(const float* from, std::int64_t row_stride, std::int64_t depth_stride,
                       std::int64_t rows, std::int64_t depth, std::int64_t width, float* packed) {
  // In pieces of K that keep the destination in the first-level cache while it is filled row by
  // row.
  constexpr std::int64_t kPiece = 64;
  for (std::int64_t k0 = 0; k0 < depth; k0 += kPiece) {
    const std::int64_t piece = depth - k0 < kPiece ? depth - k0 : kPiece;
    const float* source = from + k0 * depth_stride;
    float* to = packed + k0 * width;
    std::int64_t r = 0;
    if (depth_stride == 1)
      for (; r + 4 <= rows; r += 4) {
        const float* row[4];
        for (int i = 0; i < 4; ++i) {
          row[i] = source + (r + i) * row_stride;
          // The same rows' next piece.
          if (k0 + 2 * kPiece <= depth)
            for (std::int64_t line = 0; line < kPiece; line += 16)
              __builtin_prefetch(row[i] + kPiece + line);
        }
        pack_four_rows(row, piece, width, to + r);
      }
    for (; r < rows; ++r)
      for (std::int64_t k = 0; k < piece; ++k)
        to[k * width + r] = source[r * row_stride + k * depth_stride];
    for (; r < width; ++r)
      for (std::int64_t k = 0; k < piece; ++k) to[k * width + r] = 0.0f;
  }
}

// `rows` rows of A, `depth` deep, as row panels one after the other at packed.
inline void pack_row_panels(const float* A, std::int64_t a_row, std::int64_t a_col,
                            std::int64_t rows, std::int64_t depth, float* packed) {
  std::int64_t r = 0;
  if (a_row == 1) {
    // A transposed operand: its rows are contiguous, so whole panels are copied k by k, which reads
    // memory in long runs.
    const std::int64_t whole = rows / kTileRows * kTileRows;
    for (std::int64_t k = 0; k < depth; ++k)
      for (r = 0; r < whole; r += kTileRows)
        __builtin_memcpy(packed + r * depth + k * kTileRows, A + k * a_col + r,
                         kTileRows * sizeof(float));
    r = whole;
  }
  for (; r < rows; r += kTileRows)
    pack_panel(A + r * a_row, a_row, a_col, rows - r < kTileRows ? rows - r : kTileRows, depth,
               kTileRows, packed + r * depth);
}

// Packs depth x cols of B into panels of kTileCols columns, panel after panel.
inline void pack_columns(const float* from, std::int64_t b_row, std::int64_t b_col,
                         std::int64_t depth, std::int64_t cols, float* packed) {
  std::int64_t n = 0;
  if (b_col == 1) {
    // Whole panels row by row, so that B is read in the order it lies in memory.
    // B comes from memory here for the first time, at strides the hardware does not foresee.
    const std::int64_t whole = cols / kTileCols * kTileCols;
    for (std::int64_t k = 0; k < depth; ++k) {
      const float* row = from + k * b_row;
      const float* ahead = from + (k + kPrefetchRows < depth ? k + kPrefetchRows : k) * b_row;
      for (n = 0; n < whole; n += kTileCols)
        for (int v = 0; v < kTileVectors; ++v) {
          __builtin_prefetch(ahead + n + v * kLanes);
          store(packed + n * depth + k * kTileCols + v * kLanes, load(row + n + v * kLanes));
        }
    }
    n = whole;
  }
  for (; n < cols; n += kTileCols)
    pack_panel(from + n * b_col, b_col, b_row, cols - n < kTileCols ? cols - n : kTileCols, depth,
               kTileCols, packed + n * depth);
}

// Finishes `count` values of one row of C: adds the bias, then the epilogue.
inline void finish_row(const GemmArgs<>& args, float* c, std::int64_t m, std::int64_t n,
                       std::int64_t count) {
  float* pre = args.pre != nullptr ? args.pre + m * args.c_row + n : nullptr;
  const float* bias = args.bias != nullptr ? args.bias + n : nullptr;
  if (bias == nullptr && args.epilogue == GemmEpilogue::kNone) return;
  for (std::int64_t j = 0; j < count; j += kLanes) {
    // The last, partial vector goes through a buffer.
    float c_edge[kLanes] = {}, bias_edge[kLanes] = {}, pre_edge[kLanes] = {};
    const std::int64_t left = count - j;
    const bool whole = left >= kLanes;
    const std::size_t bytes = static_cast<std::size_t>(whole ? kLanes : left) * sizeof(float);
    const auto read = [&](const float* from, float* edge) {
      if (whole) return load(from + j);
      __builtin_memcpy(edge, from + j, bytes);
      return load(edge);
    };
    const auto write = [&](float* to, float* edge, Vec value) {
      if (whole) return store(to + j, value);
      store(edge, value);
      __builtin_memcpy(to + j, edge, bytes);
    };
    Vec x = read(c, c_edge);
    if (bias != nullptr) x += read(bias, bias_edge);
    if (args.epilogue == GemmEpilogue::kActivation) {
      if (pre != nullptr) write(pre, pre_edge, x);
      x = activated(args.activation, x);
    } else if (args.epilogue == GemmEpilogue::kActivationGrad) {
      x *= activation_slope(args.activation, read(pre, pre_edge));
    }
    write(c, c_edge, x);
  }
}

// One tile of C: `rows` rows from m, `cols` columns from n. `last` is set on the last slice of K.
template <bool kPacked>
void compute_tile(const GemmArgs<>& args, std::int64_t depth, const TileOperands& operands,
                  std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t cols,
                  bool accumulate, bool last) {
  float* c = args.C + m * args.c_row + n;
  const int vectors = static_cast<int>((cols + kLanes - 1) / kLanes);
  const TileKernel kernel = tile_kernel<kPacked>(static_cast<int>(rows), vectors);
  if (cols == vectors * kLanes) {
    kernel(depth, operands, c, args.c_row, accumulate);
  } else {
    float edge[kTileRows * kTileCols];
    const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(float);
    if (accumulate)
      for (std::int64_t i = 0; i < rows; ++i)
        __builtin_memcpy(edge + i * kTileCols, c + i * args.c_row, bytes);
    kernel(depth, operands, edge, kTileCols, accumulate);
    for (std::int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(c + i * args.c_row, edge + i * kTileCols, bytes);
  }
  if (last)
    for (std::int64_t i = 0; i < rows; ++i) finish_row(args, c + i * args.c_row, m + i, n, cols);
}

// Asks for a block of B a few cache lines at a time, while something else is being computed, so
// that packing it finds it in the second-level cache instead of waiting for memory.
struct BlockPrefetch {
  const float* row = nullptr;
  std::int64_t rows_left = 0, stride = 0, floats = 0;  // of a row
  std::int64_t at = 0;

  // depth x cols of B from `start`; strides as in GemmArgs.
  BlockPrefetch(const float* start, std::int64_t b_row, std::int64_t b_col, std::int64_t depth,
                std::int64_t cols) {
    if (b_col == 1)
      row = start, rows_left = depth, stride = b_row, floats = cols;
    else if (b_row == 1)
      row = start, rows_left = cols, stride = b_col, floats = depth;
  }

  std::int64_t lines() const { return rows_left * ((floats + kLineFloats - 1) / kLineFloats); }

  void advance(std::int64_t lines) {
    for (; lines > 0 && rows_left > 0; --lines) {
      __builtin_prefetch(row + at, 0, 2);
      at += kLineFloats;
      if (at >= floats) {
        at = 0;
        row += stride;
        --rows_left;
      }
    }
  }
};

// One slice of K as a job sees it.
struct Slice {
  std::int64_t k0, depth;
  float* packed_a;  // row panels of this slice
};

// The general case. A is packed into row panels shared by all threads, as many slices of K at a
// time as stay in the last-level cache. Each job owns a block of C: for every slice it packs its
// columns of B (small enough for the second-level cache) and multiplies them with its row panels,
// so that C goes to memory once.
inline void gemm_packed(const GemmArgs<>& args) {
  const std::int64_t slices = (args.K + kMaxDepth - 1) / kMaxDepth;
  const std::int64_t depth_step = (args.K + slices - 1) / slices;
  const std::int64_t block_rows = args.M < kMaxBlockRows ? args.M : kMaxBlockRows;
  const std::int64_t panels_most = (block_rows + kTileRows - 1) / kTileRows;
  const std::int64_t slice_floats = panels_most * kTileRows * depth_step;
  const std::int64_t slices_at_once =
      slice_floats * slices <= kMaxPackedFloats ? slices : kMaxPackedFloats / slice_floats;
  const std::int64_t pass_step = (slices_at_once > 1 ? slices_at_once : 1) * depth_step;
  float* packed_a = scratch_floats(
      ScratchSlot::kCaller, static_cast<std::size_t>(slice_floats * (pass_step / depth_step)));
  const std::int64_t job_cols = job_columns(args.N, kTileCols);
  const std::int64_t col_jobs = (args.N + job_cols - 1) / job_cols;

  for (std::int64_t m0 = 0; m0 < args.M; m0 += block_rows) {
    const std::int64_t rows = args.M - m0 < block_rows ? args.M - m0 : block_rows;
    const std::int64_t panels = (rows + kTileRows - 1) / kTileRows;
    const std::int64_t row_jobs = row_job_count(panels, col_jobs);
    const std::int64_t job_panels = (panels + row_jobs - 1) / row_jobs;
    const auto rows_of = [&](std::int64_t r) {
      return rows - r < kTileRows ? rows - r : kTileRows;
    };
    for (std::int64_t pass = 0; pass < args.K; pass += pass_step) {
      const std::int64_t pass_end = args.K - pass < pass_step ? args.K : pass + pass_step;
      const std::int64_t pass_slices = (pass_end - pass + depth_step - 1) / depth_step;
      const auto slice_of = [&](std::int64_t i) {
        const std::int64_t k0 = pass + i * depth_step;
        return Slice{k0, pass_end - k0 < depth_step ? pass_end - k0 : depth_step,
                     packed_a + i * slice_floats};
      };
      const std::int64_t pack_jobs = (panels + kPanelsPerPackJob - 1) / kPanelsPerPackJob;
      parallel_for(pass_slices * pack_jobs, 1, [&](std::int64_t job, std::int64_t) {
        const Slice slice = slice_of(job / pack_jobs);
        const std::int64_t r = job % pack_jobs * kPanelsPerPackJob * kTileRows;
        const std::int64_t most = kPanelsPerPackJob * kTileRows;
        pack_row_panels(args.A + (m0 + r) * args.a_row + slice.k0 * args.a_col, args.a_row,
                        args.a_col, rows - r < most ? rows - r : most, slice.depth,
                        slice.packed_a + r * slice.depth);
      });
      parallel_for(col_jobs * row_jobs, 1, [&](std::int64_t job, std::int64_t) {
        const std::int64_t n0 = (job / row_jobs) * job_cols;
        const std::int64_t cols = args.N - n0 < job_cols ? args.N - n0 : job_cols;
        const std::int64_t first = (job % row_jobs) * job_panels;
        const std::int64_t end = first + job_panels < panels ? first + job_panels : panels;
        float* packed_b = scratch_floats(ScratchSlot::kJob,
                                         static_cast<std::size_t>((cols + kTileCols) * depth_step));
        for (std::int64_t i = 0; i < pass_slices; ++i) {
          const Slice slice = slice_of(i);
          const bool accumulate = args.accumulate || slice.k0 > 0;
          const bool last = slice.k0 + slice.depth == args.K;
          pack_columns(args.B + slice.k0 * args.b_row + n0 * args.b_col, args.b_row, args.b_col,
                       slice.depth, cols, packed_b);
          // What this thread will probably pack next: the job's next slice, or the first slice of
          // the job that is its turn when all threads are equally fast.
          const bool more = i + 1 < pass_slices;
          const Slice next = slice_of(more ? i + 1 : 0);
          const std::int64_t next_n = more ? n0 : (job + num_threads()) / row_jobs * job_cols;
          const std::int64_t next_cols =
              next_n >= args.N ? 0 : (args.N - next_n < job_cols ? args.N - next_n : job_cols);
          BlockPrefetch prefetch(args.B + next.k0 * args.b_row + next_n * args.b_col, args.b_row,
                                 args.b_col, next.depth, next_cols);
          const std::int64_t tiles = (end - first) * ((cols + kTileCols - 1) / kTileCols);
          const std::int64_t lines_per_tile = prefetch.lines() / (tiles > 0 ? tiles : 1) + 1;
          for (std::int64_t p = first; p < end; ++p) {
            const std::int64_t r = p * kTileRows;
            for (std::int64_t n = 0; n < cols; n += kTileCols) {
              prefetch.advance(lines_per_tile);
              compute_tile<true>(
                  args, slice.depth,
                  {slice.packed_a + r * slice.depth, packed_b + n * slice.depth, 0, 0, 0}, m0 + r,
                  rows_of(r), n0 + n, cols - n < kTileCols ? cols - n : kTileCols, accumulate,
                  last);
            }
          }
        }
      });
    }
  }
}

// sums[i, :] += A[i, k] B[k, :] for k after k, kRows rows of A and `cols` columns, which are whole
// vectors.
template <int kRows>
void add_rows_of_b(const float* A, std::int64_t a_row, std::int64_t a_col, const float* B,
                   std::int64_t b_row, std::int64_t depth, std::int64_t cols, float* sums) {
  constexpr int kTogether = 8;  // rows of B: a sum is fetched and put back once for all of them
  std::int64_t k = 0;
  for (; k + kTogether <= depth; k += kTogether) {
    float a[kTogether][kRows];
    for (int r = 0; r < kTogether; ++r)
      for (int i = 0; i < kRows; ++i) a[r][i] = A[i * a_row + (k + r) * a_col];
    const float* row = B + k * b_row;
    for (std::int64_t n = 0; n < cols; n += kLanes) {
      Vec sum[kRows];
      for (int i = 0; i < kRows; ++i) sum[i] = load(sums + i * cols + n);
#pragma GCC unroll 8
      for (int r = 0; r < kTogether; ++r) {
        const Vec b = load(row + r * b_row + n);
        // Into the second-level cache, which can wait for more of them at once than the first.
        __builtin_prefetch(row + (kTogether + r) * b_row + n, 0, 2);
#pragma GCC unroll 3
        for (int i = 0; i < kRows; ++i) sum[i] += broadcast(a[r][i]) * b;
      }
      for (int i = 0; i < kRows; ++i) store(sums + i * cols + n, sum[i]);
    }
  }
  for (; k < depth; ++k)
    for (std::int64_t n = 0; n < cols; n += kLanes)
      for (int i = 0; i < kRows; ++i)
        store(sums + i * cols + n, load(sums + i * cols + n) + broadcast(A[i * a_row + k * a_col]) *
                                                                   load(B + k * b_row + n));
}

// Up to three rows, B with contiguous rows of whole vectors: the sums of gemm_few_rows in the same
// order, but B is read row by row as it lies in memory, since so short a product takes as long as B
// takes to come. What a slice of K sums up stays in the first-level cache.
inline void gemm_three_rows(const GemmArgs<>& args) {
  constexpr std::int64_t kMostCols = kFewRowsTiles * kTileCols;
  const std::int64_t job_cols = few_rows_job_columns(args.N, kTileCols);
  parallel_for((args.N + job_cols - 1) / job_cols, 1, [&](std::int64_t job, std::int64_t) {
    const std::int64_t n = job * job_cols;
    const std::int64_t cols = args.N - n < job_cols ? args.N - n : job_cols;
    float sums[3 * kMostCols];
    for (std::int64_t k0 = 0; k0 < args.K; k0 += kFewRowsDepth) {
      const std::int64_t depth = args.K - k0 < kFewRowsDepth ? args.K - k0 : kFewRowsDepth;
      __builtin_memset(sums, 0, static_cast<std::size_t>(args.M * cols) * sizeof(float));
      const auto add = args.M == 1   ? add_rows_of_b<1>
                       : args.M == 2 ? add_rows_of_b<2>
                                     : add_rows_of_b<3>;
      add(args.A + k0 * args.a_col, args.a_row, args.a_col, args.B + k0 * args.b_row + n,
          args.b_row, depth, cols, sums);
      for (std::int64_t m = 0; m < args.M; ++m) {
        float* c = args.C + m * args.c_row + n;
        for (std::int64_t j = 0; j < cols; j += kLanes) {
          const Vec sum = load(sums + m * cols + j);
          store(c + j, args.accumulate || k0 > 0 ? load(c + j) + sum : sum);
        }
      }
    }
    for (std::int64_t m = 0; m < args.M; ++m)
      finish_row(args, args.C + m * args.c_row + n, m, n, cols);
  });
}

// A few tiles' worth of rows, B with contiguous rows: every element of B is used so little that
// packing it would only add traffic. K is walked in short slices across a job's columns to read B
// in long runs; the tiles after the first find B in the cache.
inline void gemm_few_rows(const GemmArgs<>& args) {
  const std::int64_t job_cols = few_rows_job_columns(args.N, kTileCols);
  parallel_for((args.N + job_cols - 1) / job_cols, 1, [&](std::int64_t job, std::int64_t) {
    const std::int64_t n_begin = job * job_cols;
    const std::int64_t n_end = n_begin + job_cols < args.N ? n_begin + job_cols : args.N;
    for (std::int64_t k0 = 0; k0 < args.K; k0 += kFewRowsDepth) {
      const std::int64_t depth = args.K - k0 < kFewRowsDepth ? args.K - k0 : kFewRowsDepth;
      for (std::int64_t n = n_begin; n < n_end; n += kTileCols) {
        const std::int64_t cols = n_end - n < kTileCols ? n_end - n : kTileCols;
        const float* B = args.B + k0 * args.b_row + n;
        std::int64_t b_row = args.b_row;
        float edge[kFewRowsDepth * kTileCols];
        if (cols % kLanes != 0) {
          // A partial vector must not be read past the end of B.
          pack_panel(B, 1, b_row, cols, depth, kTileCols, edge);
          B = edge;
          b_row = kTileCols;
        }
        for (std::int64_t m = 0; m < args.M; m += kTileRows)
          compute_tile<false>(
              args, depth,
              {args.A + m * args.a_row + k0 * args.a_col, B, args.a_row, args.a_col, b_row}, m,
              args.M - m < kTileRows ? args.M - m : kTileRows, n, cols, args.accumulate || k0 > 0,
              k0 + depth == args.K);
      }
    }
  });
}

// Up to kTileCols rows, B with contiguous columns (a weight used transposed): the product is taken
// the other way round, C^T = B^T A^T, so that B is read in place and only the small A is packed.
inline void gemm_few_rows_transposed(const GemmArgs<>& args) {
  const std::int64_t width = (args.M + kLanes - 1) / kLanes * kLanes;
  float* packed = scratch_floats(ScratchSlot::kCaller, static_cast<std::size_t>(width * args.K));
  pack_panel(args.A, args.a_row, args.a_col, args.M, args.K, width, packed);  // [K, width]
  const TileKernel kernels[2] = {
      tile_kernel<false>(kTileRows, static_cast<int>(width / kLanes)),
      tile_kernel<false>(static_cast<int>(args.N % kTileRows), static_cast<int>(width / kLanes))};
  const std::int64_t panels = (args.N + kTileRows - 1) / kTileRows;
  parallel_for(panels, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t n = p * kTileRows;
      const std::int64_t rows = args.N - n < kTileRows ? args.N - n : kTileRows;
      float tile[kTileRows * kTileCols];
      kernels[rows == kTileRows ? 0 : 1](
          args.K, {args.B + n * args.b_col, packed, args.b_col, args.b_row, width}, tile, kTileCols,
          false);
      for (std::int64_t m = 0; m < args.M; ++m) {
        float* c = args.C + m * args.c_row + n;
        for (std::int64_t i = 0; i < rows; ++i)
          c[i] = args.accumulate ? c[i] + tile[i * kTileCols + m] : tile[i * kTileCols + m];
        finish_row(args, c, m, n, rows);
      }
    }
  });
}

// The same for up to four rows, whose vectors need no more lanes than that.
inline void gemm_four_rows_transposed(const GemmArgs<>& args) {
  typedef float Quad __attribute__((vector_size(16)));
  constexpr std::int64_t kLanesOfQuad = 4, kColumns = 8;
  float* packed =
      scratch_floats(ScratchSlot::kCaller, static_cast<std::size_t>(kLanesOfQuad * args.K));
  pack_panel(args.A, args.a_row, args.a_col, args.M, args.K, kLanesOfQuad, packed);  // [K, 4]
  const std::int64_t panels = (args.N + kColumns - 1) / kColumns;
  parallel_for(panels, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t n = p * kColumns;
      const std::int64_t columns = args.N - n < kColumns ? args.N - n : kColumns;
      // Where there are fewer, the last one stands for those that are missing.
      const float* b[kColumns];
      for (std::int64_t i = 0; i < kColumns; ++i)
        b[i] = args.B + (n + (i < columns ? i : columns - 1)) * args.b_col;
      Quad sums[kColumns] = {};
      for (std::int64_t k = 0; k < args.K; ++k) {
        Quad a;
        __builtin_memcpy(&a, packed + k * kLanesOfQuad, sizeof a);
#pragma GCC unroll 8
        for (std::int64_t i = 0; i < kColumns; ++i) sums[i] += b[i][k] * a;
        // The next columns mostly lie behind these.
        __builtin_prefetch(b[0] + kColumns * (args.K + k), 0, 2);
      }
      for (std::int64_t m = 0; m < args.M; ++m) {
        float* c = args.C + m * args.c_row + n;
        for (std::int64_t i = 0; i < columns; ++i)
          c[i] = args.accumulate ? c[i] + sums[i][m] : sums[i][m];
        finish_row(args, c, m, n, columns);
      }
    }
  });
}

// One row, B with contiguous columns: a dot product a column.
inline void gemm_one_row_transposed(const GemmArgs<>& args) {
  parallel_for(args.N, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* b = args.B + n * args.b_col;
      Vec partial[4] = {};
      std::int64_t k = 0;
      for (; k + 4 * kLanes <= args.K; k += 4 * kLanes)
        for (int v = 0; v < 4; ++v)
          partial[v] += load(args.A + k + v * kLanes) * load(b + k + v * kLanes);
      float total = sum((partial[0] + partial[1]) + (partial[2] + partial[3]));
      for (; k < args.K; ++k) total += args.A[k] * b[k];
      args.C[n] = args.accumulate ? args.C[n] + total : total;
    }
    finish_row(args, args.C + begin, 0, begin, end - begin);
  });
}

inline void gemm_dispatch(const GemmArgs<>& args) {
  if (args.M <= 3 && args.b_col == 1 && args.N % kLanes == 0) return gemm_three_rows(args);
  if (args.M <= kFewRowTiles * kTileRows && args.b_col == 1) return gemm_few_rows(args);
  if (args.M == 1 && args.b_row == 1 && args.a_col == 1) return gemm_one_row_transposed(args);
  if (args.M <= 4 && args.b_row == 1 && args.N >= 4 * args.M)
    return gemm_four_rows_transposed(args);
  if (args.M <= kTileCols && args.b_row == 1 && args.N >= 4 * args.M)
    return gemm_few_rows_transposed(args);
  gemm_packed(args);
}

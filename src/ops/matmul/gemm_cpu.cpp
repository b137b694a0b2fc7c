#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "ops/matmul/gemm.h"
#include "runtime/cpu/scratch.h"

namespace filigree {
namespace {

// Depth of one slice of K: a row panel of A (kTileRows x depth) and a vector column of B stay in
// the first-level cache, and C is read and written once per slice.
constexpr std::int64_t kMaxDepth = 512;
// Rows of A packed at a time; bounds the shared scratch to a few megabytes.
constexpr std::int64_t kMaxBlockRows = 2048;
// Packed A of all slices that are worked on together: 3 MiB of the last-level cache.
constexpr std::int64_t kMaxPackedFloats = 3 << 18;
// Columns of B one job packs: 192 x 512 floats are 384 KiB of the second-level cache.
constexpr std::int64_t kMaxJobColumns = 192;

constexpr std::int64_t kLineFloats = 16;  // of a cache line
// Rows of B that packing asks for ahead of time.
constexpr std::int64_t kPrefetchRows = 16;
// Row panels of A one job packs.
constexpr std::int64_t kPanelsPerPackJob = 16;
// Up to this many row tiles B is used in place.
constexpr std::int64_t kFewRowTiles = 2;
// Tiles side by side in one job then, at most.
constexpr std::int64_t kFewRowsTiles = 16;
// Depth of a slice when B is used in place.
constexpr std::int64_t kFewRowsDepth = 64;

// Every thread should have a few jobs. Fewer columns a job come first, because jobs that share
// columns each pack them.
constexpr std::int64_t kJobsPerThread = 4;

std::int64_t job_columns(std::int64_t N, std::int64_t tile_cols) {
  const std::int64_t wanted = kJobsPerThread * num_threads();
  const std::int64_t even = ((N + wanted - 1) / wanted + tile_cols - 1) / tile_cols * tile_cols;
  return std::min(kMaxJobColumns / tile_cols * tile_cols, even);
}

std::int64_t few_rows_job_columns(std::int64_t N, std::int64_t tile_cols) {
  const std::int64_t threads = threads_for_ranges();
  const std::int64_t per_thread = (N + threads - 1) / threads;
  const std::int64_t most = kFewRowsTiles * tile_cols;
  return std::min(most, (per_thread + tile_cols - 1) / tile_cols * tile_cols);
}

// Jobs to cut the rows into, so that every thread has a few.
std::int64_t row_job_count(std::int64_t panels, std::int64_t col_jobs) {
  const std::int64_t wanted = kJobsPerThread * num_threads();
  return std::clamp<std::int64_t>((wanted + col_jobs - 1) / col_jobs, 1,
                                  std::max<std::int64_t>(1, panels / 4));
}

}  // namespace
}  // namespace filigree

#define FILIGREE_SIMD_BODY "ops/matmul/gemm_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cpu {

void gemm(const GemmArgs<>& args) {
  if (args.M == 0 || args.N == 0) return;
  require(args.K > 0, "gemm: the inner dimension is 0");
  FILIGREE_SIMD_CALL(gemm_dispatch, args);
}

}  // namespace filigree::cpu

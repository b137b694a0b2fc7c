#include "apps/cli/ceiling.h"

#include <algorithm>
#include <atomic>

#include "apps/cli/session.h"
#include "apps/cli/stopwatch.h"
#include "ops/matmul/gemm.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "tensor/tensor.h"

#define FILIGREE_SIMD_BODY "apps/cli/ceiling_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::cli {
namespace {

constexpr int kRuns = 3;

// Seconds of the best of several runs: what else the machine does only ever makes it slower.
template <typename Body>
double best_seconds(const Body& body) {
  body();
  double best = 1e300;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch watch;
    body();
    best = std::min(best, watch.seconds());
    throw_if_interrupted();
  }
  return best;
}

// Results end up here, so that the compiler cannot leave the work out.
std::atomic<float> result{0.0f};

double measure_multiply_add() {
  constexpr std::int64_t kSteps = 4000000;
  const int threads = num_threads();
  const double seconds = best_seconds([&] {
    parallel_for(threads, 1, [](std::int64_t, std::int64_t) {
      result.store(FILIGREE_SIMD_CALL(multiply_adds, kSteps));
    });
  });
  const double operations = static_cast<double>(FILIGREE_SIMD_CALL(multiply_add_operations)) *
                            static_cast<double>(kSteps) * threads;
  return operations / seconds * 1e-9;
}

double measure_matrix(std::int64_t n) {
  const Tensor a = Tensor::full({n, n}, 0.5f), b = Tensor::full({n, n}, 0.25f);
  Tensor c = Tensor::empty({n, n});
  GemmArgs args;
  args.M = args.N = args.K = n;
  args.A = a.f32(), args.a_row = n;
  args.B = b.f32(), args.b_row = n;
  args.C = c.mutable_f32(), args.c_row = n;
  const double seconds = best_seconds([&] { cpu::gemm(args); });
  const auto side = static_cast<double>(n);
  return 2.0 * side * side * side / seconds * 1e-9;
}

double measure_reading() {
  // Far larger than any cache.
  constexpr std::int64_t kCount = std::int64_t{1} << 27, kPiece = std::int64_t{1} << 18;
  const Tensor values = Tensor::full({kCount}, 1.0f);
  const double seconds = best_seconds([&] {
    parallel_for(kCount, kPiece, [&](std::int64_t begin, std::int64_t end) {
      result.store(FILIGREE_SIMD_CALL(read_all, values.f32() + begin, end - begin));
    });
  });
  return static_cast<double>(kCount) * sizeof(float) / seconds * 1e-9;
}

}  // namespace

Ceiling measure_ceiling(std::int64_t matrix_size) {
  Ceiling ceiling;
  ceiling.multiply_add_gflops = measure_multiply_add();
  ceiling.matrix_gflops = measure_matrix(matrix_size);
  ceiling.matrix_size = matrix_size;
  ceiling.read_gbs = measure_reading();
  trim_pool();
  return ceiling;
}

Ceiling highest(const Ceiling& a, const Ceiling& b) {
  return {std::max(a.multiply_add_gflops, b.multiply_add_gflops),
          std::max(a.matrix_gflops, b.matrix_gflops), a.matrix_size,
          std::max(a.read_gbs, b.read_gbs)};
}

}  // namespace filigree::cli

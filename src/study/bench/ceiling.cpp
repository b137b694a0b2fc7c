#include "study/bench/ceiling.h"

#include <algorithm>
#include <atomic>

#include "base/stopwatch.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "ops/matmul/gemm.h"
#include "ops/reduce/total.h"
#include "tensor/dispatch.h"

#define FILIGREE_SIMD_BODY "study/bench/ceiling_body.inl"
#include "runtime/cpu/simd_targets.h"

namespace filigree::study {
namespace {

constexpr int kRuns = 3;

// Seconds of the best of several runs: what else the machine does only ever makes it slower.
template <typename Body>
double best_seconds(const Context& context, const Body& body) {
  body();
  double best = 1e300;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch watch;
    body();
    best = std::min(best, watch.seconds());
    context.throw_if_stopped();
  }
  return best;
}

// Results end up here, so that the compiler cannot leave the work out.
std::atomic<float> kept_result{0.0f};

double measure_multiply_add(const Context& context) {
  constexpr std::int64_t kSteps = 4000000;
  const int threads = num_threads();
  const double seconds = best_seconds(context, [&] {
    parallel_for(threads, 1, [](std::int64_t, std::int64_t) {
      kept_result.store(FILIGREE_SIMD_CALL(multiply_adds, kSteps));
    });
  });
  const double operations = static_cast<double>(FILIGREE_SIMD_CALL(multiply_add_operations)) *
                            static_cast<double>(kSteps) * threads;
  return operations / seconds * 1e-9;
}

// `n` x `n` by `n` x `n` on the placement's device.
double measure_matrix(const Context& context, std::int64_t n) {
  const Placement& placement = context.placement;
  // Of random bits: a GPU that multiplies constants draws less power and keeps a higher clock.
  const auto random = [&](std::uint64_t seed) {
    Tensor x = Tensor::empty({n, n});
    fill_uniform({x.mutable_f32(), static_cast<std::size_t>(x.elements())}, seed, 0);
    return x.to(placement.precision).to(placement.device);
  };
  const Tensor a = random(1), b = random(2);
  Tensor c = a.like({n, n});
  const auto multiply = [&](auto type) {
    using T = decltype(type);
    GemmArgs<T> args;
    args.M = args.N = args.K = n;
    args.A = a.data<T>(), args.a_row = n;
    args.B = b.data<T>(), args.b_row = n;
    args.C = c.mutable_data<T>(), args.c_row = n;
    gemm_on(placement.device, args);
  };
  const double seconds = best_seconds(context, [&] {
    dispatch(
        "ceiling", a, [&] { multiply(float()); }, multiply);
    wait_for(placement.device);
  });
  const auto side = static_cast<double>(n);
  return 2.0 * side * side * side / seconds * 1e-9;
}

double measure_reading(const Context& context) {
  // Far larger than any cache.
  constexpr std::int64_t kCount = std::int64_t{1} << 27, kPiece = std::int64_t{1} << 18;
  const Tensor values = Tensor::full({kCount}, 1.0f);
  const double seconds = best_seconds(context, [&] {
    parallel_for(kCount, kPiece, [&](std::int64_t begin, std::int64_t end) {
      kept_result.store(FILIGREE_SIMD_CALL(read_all, values.f32() + begin, end - begin));
    });
  });
  return static_cast<double>(kCount) * sizeof(float) / seconds * 1e-9;
}

// Memory of a GPU, as a sum of 4 GB sees it.
double measure_reading_on_gpu(const Context& context) {
  const Tensor values = Tensor::full({std::int64_t{1} << 30}, 1.0f, DeviceKind::kCuda);
  const double seconds = best_seconds(context, [&] {
    total(values, 1.0);
    wait_for(DeviceKind::kCuda);
  });
  return static_cast<double>(values.bytes()) / seconds * 1e-9;
}

}  // namespace

Ceiling measure_ceiling(const Context& context, std::int64_t matrix_size) {
  const Placement& placement = context.placement;
  const bool gpu = placement.device == DeviceKind::kCuda;
  Ceiling ceiling;
  if (!gpu) ceiling.multiply_add_gflops = measure_multiply_add(context);
  ceiling.matrix_gflops = measure_matrix(context, matrix_size);
  ceiling.matrix_size = matrix_size;
  ceiling.read_gbs = gpu ? measure_reading_on_gpu(context) : measure_reading(context);
  trim_pool(placement.device);
  return ceiling;
}

Ceiling highest(const Ceiling& a, const Ceiling& b) {
  return {std::max(a.multiply_add_gflops, b.multiply_add_gflops),
          std::max(a.matrix_gflops, b.matrix_gflops), a.matrix_size,
          std::max(a.read_gbs, b.read_gbs)};
}

}  // namespace filigree::study

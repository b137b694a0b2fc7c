// Attention of every width, with windows, soft caps and gates, on the GPU against double precision:
// results and every gradient. With FILIGREE_TIME_OPS=1 in the environment also how long it takes.
#include <cstdlib>

#include "base/stopwatch.h"
#include "ops/attention/doubles_test_support.h"
#include "ops/attention/flash_attention_cuda.h"
#include "runtime/cuda/launch_cuda.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

using namespace against_doubles;

constexpr std::int64_t kWidths[] = {16, 32, 64, 80, 96, 128, 256};

class CudaAttentionWidths : public testing::TestWithParam<std::int64_t> {};

TEST_P(CudaAttentionWidths, OnTensorCoresAsInDoublePrecision) {
  FILIGREE_NEEDS_GPU();
  const auto D = static_cast<int>(GetParam());
  ASSERT_TRUE(cuda::flash_attention_takes({1, 2, 1, 77, 77, D, kScale, 20, 1.5f}));
  for (const Extents& e : kExtents)
    for (const ReferenceGate kind : kGates)
      check_against_doubles(e, GetParam(), kind, DeviceKind::kCuda, DType::kBf16);
}

TEST_P(CudaAttentionWidths, InSinglePrecision) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : {kExtents[1], kExtents[3], kExtents[4]})
    for (const ReferenceGate kind : kGates)
      check_against_doubles(e, GetParam(), kind, DeviceKind::kCuda, DType::kF32);
}

INSTANTIATE_TEST_SUITE_P(Widths, CudaAttentionWidths, testing::ValuesIn(kWidths),
                         [](const auto& width) { return std::to_string(width.param); });

// A block of keys that no query sees any more, at both ends.
TEST(CudaAttentionWindows, KeysThatNoQuerySees) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t D : {64, 128, 256})
    for (const std::int64_t window : {1, 3, 64})
      check_against_doubles({1, 40, 400, 2, 1, window, 0.0f}, D, ReferenceGate::kSampled,
                            DeviceKind::kCuda, DType::kBf16);
}

// Seconds of the forward pass and of both, the least of several.
struct Times {
  double forward = INFINITY, both = INFINITY;
};

Times time_attention(const Inputs& in, ReferenceGate kind, const ScoreMask& mask) {
  std::vector<Variable> variables;
  for (const Tensor& input : {in.q, in.k, in.v})
    variables.emplace_back(input.to(DeviceKind::kCuda).to(DType::kBf16), true);
  const Tensor seed = in.dz.to(DeviceKind::kCuda).to(DType::kBf16);
  GatedAttentionOptions options;
  options.gate.bias = in.bias.to(DeviceKind::kCuda);
  options.gate.sample = kind == ReferenceGate::kSampled;
  options.score_mask = mask;
  const auto run = [&](bool backward) {
    constexpr int kAtOnce = 5;
    cuda::synchronize();
    const Stopwatch watch;
    for (int i = 0; i < kAtOnce; ++i) {
      Tape tape;
      const Variable z = kind == ReferenceGate::kNone
                             ? attention(variables[0], variables[1], variables[2], {.mask = mask})
                             : gated_attention(variables[0], variables[1], variables[2], options).z;
      if (backward) tape.backward(z, seed);
      for (const Variable& variable : variables) variable.clear_grad();
    }
    cuda::synchronize();
    return watch.seconds() / kAtOnce;
  };
  Times times;
  for (int i = 0; i < 5; ++i) {
    times.forward = std::min(times.forward, run(false));
    times.both = std::min(times.both, run(true));
  }
  return times;
}

// The operations that count are those of the edges that are seen: 4 D of each forward, 10 D
// backward.
TEST(CudaAttentionTimes, OfEveryWidth) {
  FILIGREE_NEEDS_GPU();
  if (std::getenv("FILIGREE_TIME_OPS") == nullptr)
    GTEST_SKIP() << "FILIGREE_TIME_OPS is not in the environment";
  constexpr std::int64_t kTokens = 16384, kWidth = 2048;
  fmt::print("attention of {} x 2048 tokens, heads of {} columns together, bf16\n", kTokens / 2048,
             kWidth);
  fmt::print("{:>5} {:>8} {:>6} {:>5} {:>10} {:>10} {:>12} {:>12}\n", "D", "gate", "window", "cap",
             "forward ms", "backwd ms", "fwd TFLOP/s", "bwd TFLOP/s");
  struct Setting {
    ReferenceGate kind;
    ScoreMask mask;
  };
  const Setting settings[] = {{ReferenceGate::kNone, {}},
                              {ReferenceGate::kSampled, {}},
                              {ReferenceGate::kNone, {.window = 512}},
                              {ReferenceGate::kSampled, {.window = 512, .soft_cap = 50.0f}}};
  for (const std::int64_t D : {64, 80, 96, 128, 256}) {
    const std::int64_t H = kWidth / D;
    const Extents e = {kTokens / 2048, 2048, 2048, H, H, 0, 0.0f};
    const Inputs in(e, D, 1);
    for (const Setting& setting : settings) {
      const Times times = time_attention(in, setting.kind, setting.mask);
      const AttentionShape shape =
          attention_shape("time", {e.B, e.Tq, H, D}, {e.B, e.Tk, H, D}, -1, 0.0f, setting.mask);
      const double unit = seen_pairs(shape) * static_cast<double>(e.B * H * D) * 1e-12;
      const double backward = times.both - times.forward;
      fmt::print("{:>5} {:>8} {:>6} {:>5} {:>10.3f} {:>10.3f} {:>12.1f} {:>12.1f}\n", D,
                 setting.kind == ReferenceGate::kNone ? "none" : "sampled", setting.mask.window,
                 setting.mask.soft_cap, 1e3 * times.forward, 1e3 * backward,
                 4.0 * unit / times.forward, 10.0 * unit / backward);
    }
  }
  SUCCEED();
}

}  // namespace
}  // namespace filigree

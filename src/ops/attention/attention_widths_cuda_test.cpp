// Attention of every width, with windows, soft caps and gates, on the GPU against double precision:
// results and every gradient. With FILIGREE_TIME_OPS=1 in the environment also how long it takes.
#include <fmt/core.h>

#include <cmath>

#include "filigree/base/stopwatch.h"
#include "filigree/ops/attention/attention.h"
#include "filigree/ops/attention/attention_reference.h"
#include "filigree/ops/attention/attention_shape.h"
#include "filigree/ops/attention/flash_attention_cuda.h"
#include "filigree/ops/attention/gated_attention.h"
#include "filigree/ops/elementwise/elementwise.h"
#include "filigree/ops/layout/layout.h"
#include "filigree/ops/reduce/reduce.h"
#include "filigree/runtime/cuda/launch_cuda.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

struct Extents {
  std::int64_t B, Tq, Tk, H, G, window;
  float soft_cap;
};

// Lengths that no tile divides, windows smaller and larger than a tile and at its edge, grouped
// keys, queries that follow earlier ones.
constexpr Extents kExtents[] = {{1, 77, 77, 4, 2, 0, 0.0f},     {2, 70, 131, 2, 1, 20, 0.0f},
                                {1, 200, 200, 2, 2, 64, 0.0f},  {1, 150, 150, 4, 2, 0, 1.5f},
                                {1, 193, 201, 2, 1, 100, 1.5f}, {1, 9, 300, 2, 2, 65, 0.0f}};
constexpr float kScale = 0.3f;
constexpr double kMargin = 1e-5;  // of gates to their thresholds

// Of values that bf16 holds.
Tensor rounded(const Shape& shape, std::uint64_t seed, float low, float high) {
  return random_tensor(shape, seed, low, high).to(DType::kBf16).to(DType::kF32);
}

struct Inputs {
  Tensor q, k, v, dz, bias;

  Inputs(const Extents& e, std::int64_t D, std::uint64_t seed)
      : q(rounded({e.B, e.Tq, e.H, D}, seed, -1.5f, 1.5f)),
        k(rounded({e.B, e.Tk, e.G, D}, seed + 1, -1.5f, 1.5f)),
        v(rounded({e.B, e.Tk, e.G, D}, seed + 2, -1.0f, 1.0f)),
        dz(rounded({e.B, e.Tq, e.H, D}, seed + 3, -1.0f, 1.0f)),
        bias(random_tensor({e.H}, seed + 4, -0.5f, 1.0f)) {}
};

// What a run on the GPU gives, all on the CPU.
struct Found {
  Tensor z, expected, active, pattern;
  std::vector<Tensor> gradients;  // of q, k, v, bias
};

Found run_there(const Inputs& in, const Extents& e, ReferenceGate kind, const GateNoise& noise,
                double edge_weight, DType dtype) {
  std::vector<Variable> variables;
  for (const Tensor& input : {in.q, in.k, in.v})
    variables.emplace_back(input.to(DeviceKind::kCuda).to(dtype), true);
  const ScoreMask mask = {e.window, e.soft_cap};
  const Tensor seed = in.dz.to(DeviceKind::kCuda).to(dtype);
  Found found;
  Tape tape;
  if (kind == ReferenceGate::kNone) {
    const Variable z = attention(variables[0], variables[1], variables[2],
                                 {.scale = kScale, .mask = mask, .pattern = &found.pattern});
    found.z = z.value().on_host();
    tape.backward(z, seed);
  } else {
    const Variable bias(in.bias.to(DeviceKind::kCuda), true);
    GatedAttentionOptions options;
    options.gate.bias = bias;
    options.gate.sample = kind == ReferenceGate::kSampled;
    options.gate.noise = noise;
    options.scale = kScale, options.score_mask = mask;
    options.pattern = &found.pattern;
    const GatedAttention result =
        gated_attention(variables[0], variables[1], variables[2], options);
    found.z = result.z.value().on_host();
    found.expected = result.expected.value().on_host();
    found.active = result.active.on_host();
    tape.backward(add(placed(sum_all(mul(result.z, seed)), DeviceKind::kCuda, DType::kF32),
                      scale(sum_all(result.expected), static_cast<float>(edge_weight))));
    variables.push_back(bias);
  }
  found.pattern = found.pattern.on_host();
  for (const Variable& variable : variables) found.gradients.push_back(variable.grad().on_host());
  return found;
}

double distance(const Tensor& found, const std::vector<double>& wanted) {
  double difference = 0.0, size = 1e-30;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(found.values()[i]) - wanted[i], 2.0);
    size += wanted[i] * wanted[i];
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / size);
}

std::vector<double> summed_over_examples(const std::vector<double>& of, std::int64_t heads) {
  std::vector<double> sums(static_cast<std::size_t>(heads), 0.0);
  for (std::size_t i = 0; i < of.size(); ++i) sums[i % sums.size()] += of[i];
  return sums;
}

void check_against_doubles(const Extents& e, std::int64_t D, ReferenceGate kind, DType dtype) {
  SCOPED_TRACE(fmt::format("D {}, Tq {}, Tk {}, H {}, G {}, window {}, cap {}, gate {}, {}", D,
                           e.Tq, e.Tk, e.H, e.G, e.window, e.soft_cap, static_cast<int>(kind),
                           name_of(dtype)));
  AttentionReference reference;
  reference.shape = attention_shape("test", {e.B, e.Tq, e.H, D}, {e.B, e.Tk, e.G, D}, -1, kScale,
                                    {e.window, e.soft_cap});
  reference.gate = kind;
  reference.noise = {11, 5, 3, 2};
  reference.edge_weight = 30.0;
  // Other inputs where rounding would decide a gate.
  std::uint64_t seed = 1;
  std::optional<Inputs> in;
  do {
    reference.margin = INFINITY;
    in.emplace(e, D, seed += 10);
    reference.run(to_doubles(in->q), to_doubles(in->k), to_doubles(in->v), to_doubles(in->bias),
                  to_doubles(in->dz));
  } while (reference.margin < kMargin && seed < 300);
  ASSERT_GE(reference.margin, kMargin);

  const Found found = run_there(*in, e, kind, reference.noise, reference.edge_weight, dtype);
  const Found again = run_there(*in, e, kind, reference.noise, reference.edge_weight, dtype);
  const bool half = dtype == DType::kBf16;
  EXPECT_LT(distance(found.z, reference.z), half ? 5e-3 : 1e-5) << "z";
  EXPECT_TRUE(check_op_detail::same_bits(found.z, again.z));
  const std::vector<double> wanted[] = {reference.dq, reference.dk, reference.dv,
                                        summed_over_examples(reference.dbias, e.H)};
  constexpr const char* kNames[] = {"dq", "dk", "dv", "dbias"};
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    EXPECT_LT(distance(found.gradients[i], wanted[i]), half ? 1e-2 : 3e-5) << kNames[i];
    EXPECT_TRUE(check_op_detail::same_bits(found.gradients[i], again.gradients[i])) << kNames[i];
  }
  if (kind == ReferenceGate::kNone) {
    double sum = 0.0;
    for (const float weight : found.pattern.values()) sum += static_cast<double>(weight);
    EXPECT_NEAR(sum / static_cast<double>(e.B * e.H * e.Tq), 1.0, 1e-4) << "rows of the map";
    return;
  }
  EXPECT_LT(distance(found.expected, reference.expected), 1e-4) << "expected";
  EXPECT_LT(distance(found.active, reference.active), 1e-6) << "active";
}

constexpr std::int64_t kWidths[] = {16, 32, 64, 80, 96, 128, 256};
constexpr ReferenceGate kGates[] = {ReferenceGate::kNone, ReferenceGate::kHard,
                                    ReferenceGate::kSampled};

class CudaAttentionWidths : public testing::TestWithParam<std::int64_t> {};

TEST_P(CudaAttentionWidths, OnTensorCoresAsInDoublePrecision) {
  FILIGREE_NEEDS_GPU();
  const auto D = static_cast<int>(GetParam());
  ASSERT_TRUE(cuda::flash_attention_takes({1, 2, 1, 77, 77, D, kScale, 20, 1.5f}));
  for (const Extents& e : kExtents)
    for (const ReferenceGate kind : kGates)
      check_against_doubles(e, GetParam(), kind, DType::kBf16);
}

TEST_P(CudaAttentionWidths, InSinglePrecision) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : {kExtents[1], kExtents[3], kExtents[4]})
    for (const ReferenceGate kind : kGates) check_against_doubles(e, GetParam(), kind, DType::kF32);
}

INSTANTIATE_TEST_SUITE_P(Widths, CudaAttentionWidths, testing::ValuesIn(kWidths),
                         [](const auto& width) { return std::to_string(width.param); });

// A block of keys that no query sees any more, at both ends.
TEST(CudaAttentionWindows, KeysThatNoQuerySees) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t D : {64, 128, 256})
    for (const std::int64_t window : {1, 3, 64})
      check_against_doubles({1, 40, 400, 2, 1, window, 0.0f}, D, ReferenceGate::kSampled,
                            DType::kBf16);
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
      const double unit = causal_pairs(shape) * static_cast<double>(e.B * H * D) * 1e-12;
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

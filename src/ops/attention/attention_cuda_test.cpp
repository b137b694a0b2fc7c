#include <fmt/core.h>

#include <cmath>

#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

struct Extents {
  std::int64_t B, Tq, Tk, H, G, D;
  std::string name() const {
    return fmt::format("B {} Tq {} Tk {} H {} G {} D {}", B, Tq, Tk, H, G, D);
  }
};

const std::vector<Extents>& extents() {
  static const std::vector<Extents> all = {
      {1, 1, 1, 1, 1, 1},    {2, 5, 5, 3, 3, 7},       {1, 3, 9, 4, 2, 8},
      {2, 33, 33, 2, 1, 16}, {1, 70, 130, 2, 2, 64},   {1, 600, 600, 1, 1, 20},
      {2, 64, 64, 4, 4, 64}, {1, 128, 128, 2, 2, 128}, {1, 100, 170, 4, 2, 32},
      {1, 90, 90, 2, 1, 80}, {1, 65, 100, 2, 2, 96},   {1, 70, 90, 2, 1, 256}};
  return all;
}

std::vector<Tensor> qkv(const Extents& e) {
  return {random_tensor({e.B, e.Tq, e.H, e.D}, 1, -1.5f, 1.5f),
          random_tensor({e.B, e.Tk, e.G, e.D}, 2, -1.5f, 1.5f),
          random_tensor({e.B, e.Tk, e.G, e.D}, 3)};
}

void check_attention(const Extents& e) {
  check_cuda({.name = e.name(),
              .inputs = qkv(e),
              .op = [](const std::vector<Variable>& in) { return attention(in[0], in[1], in[2]); },
              .tolerance = 2e-5,
              .bf16_tolerance = 2e-2});
}

TEST(CudaAttention, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : extents()) check_attention(e);
}

// A grid has 65,535 blocks along the axis of the examples.
TEST(CudaAttention, MoreExamplesThanAGridHolds) {
  FILIGREE_NEEDS_GPU();
  check_attention({70'000, 2, 2, 1, 1, 64});
}

// More keys than shared memory holds scores of.
TEST(CudaAttention, ALongRow) {
  FILIGREE_NEEDS_GPU();
  check_attention({1, 3, 70'000, 1, 1, 16});
}

// Softmax takes a vector that is added to all keys away, so the gradients of all keys cancel. Here
// all values are nearly the same, and rounding takes the same from every result.
TEST(CudaAttention, TheGradientsOfAllKeysCancel) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t D : {16, 32, 64, 80, 96, 128, 256}) {
    const std::int64_t B = 2, T = 200, H = 2;
    const Tensor q = random_tensor({B, T, H, D}, 1, 0.5f, 1.5f);
    const Tensor k = random_tensor({B, T, H, D}, 2, -1.0f, 1.0f);
    Tensor v = random_tensor({B, T, H, D}, 3, 0.0f, 1.0f);
    constexpr float kStep = 1.0f / 256.0f;  // of bf16 below 1
    for (std::int64_t i = 0; i < v.elements(); ++i)
      v.mutable_f32()[i] = 0.75f + (v.f32()[i] < 0.3f ? kStep : 0.0f);
    std::vector<Variable> in;
    for (const Tensor& x : {q, k, v})
      in.emplace_back(x.to(DeviceKind::kCuda).to(DType::kBf16), true);
    Tape tape;
    const Variable z = attention(in[0], in[1], in[2]);
    tape.backward(sum_all(z));
    const std::vector<double> dk = to_doubles(in[1].grad().on_host());
    double largest = 0.0, all = 0.0;
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t part = 0; part < H * D; ++part) {
        double sum = 0.0;
        for (std::int64_t t = 0; t < T; ++t) {
          const double x = dk[static_cast<std::size_t>((b * T + t) * H * D + part)];
          sum += x;
          all += std::abs(x) / static_cast<double>(B * H * D);
        }
        largest = std::max(largest, std::abs(sum));
      }
    EXPECT_GT(all, 0.0);
    EXPECT_LT(largest, 0.03 * all) << "D " << D;
  }
}

TEST(CudaAttention, MapsAndLogSums) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : extents())
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE(e.name() + (dtype == DType::kBf16 ? " in bf16" : ""));
      std::vector<Tensor> in, there;
      for (const Tensor& x : qkv(e)) {
        in.push_back(x.to(dtype).to(DType::kF32));
        there.push_back(x.to(DeviceKind::kCuda).to(dtype));
      }
      Tensor pattern, lse, gpu_pattern, gpu_lse;
      attention(in[0], in[1], in[2], {.scale = 0.3f, .pattern = &pattern, .log_sum_exp = &lse});
      attention(there[0], there[1], there[2],
                {.scale = 0.3f, .pattern = &gpu_pattern, .log_sum_exp = &gpu_lse});
      // Products of bf16 are exact in f32, so that both have about the same error.
      EXPECT_LT(relative_error(gpu_pattern.on_host().values(), to_doubles(pattern)), 1e-5);
      EXPECT_LT(relative_error(gpu_lse.on_host().values(), to_doubles(lse)), 1e-5);
    }
}

TEST(CudaAttention, APartlyFilledCache) {
  FILIGREE_NEEDS_GPU();
  const Tensor q = random_tensor({2, 3, 4, 8}, 1), k = random_tensor({2, 20, 2, 8}, 2),
               v = random_tensor({2, 20, 2, 8}, 3);
  const Tensor here = attention(q, k, v, {.keys = 11}).value();
  const Tensor there = attention(q.to(DeviceKind::kCuda), k.to(DeviceKind::kCuda),
                                 v.to(DeviceKind::kCuda), {.keys = 11})
                           .value();
  EXPECT_LT(relative_error(there.on_host().values(), to_doubles(here)), 1e-5);
}

TEST(CudaAttention, ByParts) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : extents())
    check_cuda({.name = e.name(),
                .inputs = qkv(e),
                .op =
                    [](const std::vector<Variable>& in) {
                      return attention_mix(softmax(attention_scores(in[0], in[1])), in[2]);
                    },
                .tolerance = 2e-5,
                // Scores, patterns and their gradients are all rounded to bf16 here.
                .bf16_tolerance = 4e-2});
}

// Of a gated pass on one device: masks, and everything that is differentiable in one number.
struct Gated {
  Tensor z, pattern, mask, active, expected;
  std::vector<Tensor> gradients;
};

Gated run_gated(const std::vector<Tensor>& inputs, const Tensor& bias, const GateOptions& options,
                DeviceKind device, DType dtype, bool with_maps = true) {
  std::vector<Variable> in;
  for (const Tensor& input : inputs) in.emplace_back(input.to(device).to(dtype), true);
  const Variable b(bias.to(device), true);
  GatedAttentionOptions gated;
  gated.gate = options;
  gated.gate.bias = b;
  Gated out;
  if (with_maps) gated.mask = &out.mask, gated.pattern = &out.pattern;
  Tape tape;
  const GatedAttention result = gated_attention(in[0], in[1], in[2], gated);
  const Tensor seed = random_tensor(result.z.shape(), 9).to(DType::kBf16).to(DType::kF32);
  const Variable weighted = sum_all(mul(result.z, seed.to(device).to(dtype)));
  const Variable edges = scale(sum_all(result.expected), 30.0f);
  out.z = result.z.value().on_host();
  out.expected = result.expected.value().on_host();
  out.active = result.active.on_host();
  if (with_maps) out.mask = out.mask.on_host(), out.pattern = out.pattern.on_host();
  tape.backward(add(placed(weighted, device), edges));
  for (const Variable& variable : in) out.gradients.push_back(variable.grad().on_host());
  out.gradients.push_back(b.grad().on_host());
  return out;
}

// Whether an edge's gate is so near its threshold that rounding decides.
struct Disagreement {
  std::int64_t edges = 0, different = 0;
};

Disagreement compare_masks(const Tensor& a, const Tensor& b) {
  Disagreement result{a.elements(), 0};
  for (std::int64_t i = 0; i < a.elements(); ++i) result.different += a.f32()[i] != b.f32()[i];
  return result;
}

class CudaGatedAttention : public testing::TestWithParam<bool> {};

TEST_P(CudaGatedAttention, MatchesTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const Extents& e : extents())
    for (const bool one_bias : {true, false})
      for (const bool given_noise : {false, true}) {
        SCOPED_TRACE(e.name() + (one_bias ? " one bias" : "") +
                     (given_noise ? " given noise" : ""));
        const Tensor bias = random_tensor({one_bias ? 1 : e.H}, 4, -0.5f, 1.0f);
        GateOptions gate;
        gate.sample = GetParam();
        gate.noise = {11, 5, 3, 2};
        if (given_noise) gate.uniform = random_tensor({e.B, e.H, e.Tq, e.Tk}, 6, 0.01f, 0.99f);
        const std::vector<Tensor> inputs = qkv(e);
        const Gated here = run_gated(inputs, bias, gate, DeviceKind::kCpu, DType::kF32);
        const Gated there = run_gated(inputs, bias, gate, DeviceKind::kCuda, DType::kF32);
        const Disagreement f32 = compare_masks(there.mask, here.mask);
        // A score within rounding of its threshold may fall on either side.
        EXPECT_LE(f32.different, 1 + f32.edges / 100000)
            << f32.different << " of " << f32.edges << " gates differ";
        if (f32.different == 0) {
          EXPECT_LT(relative_error(there.z.values(), to_doubles(here.z)), 2e-5) << "z";
          EXPECT_LT(relative_error(there.pattern.values(), to_doubles(here.pattern)), 1e-5);
          EXPECT_LT(relative_error(there.expected.values(), to_doubles(here.expected)), 1e-5);
          EXPECT_LT(relative_error(there.active.values(), to_doubles(here.active)), 1e-6);
          for (std::size_t i = 0; i < here.gradients.size(); ++i)
            EXPECT_LT(relative_error(there.gradients[i].values(), to_doubles(here.gradients[i])),
                      5e-5)
                << "gradient " << i;
        }
        std::vector<Tensor> rounded;
        for (const Tensor& input : inputs)
          rounded.push_back(input.to(DType::kBf16).to(DType::kF32));
        const Gated reference = run_gated(rounded, bias, gate, DeviceKind::kCpu, DType::kF32);
        const Gated bf16 = run_gated(rounded, bias, gate, DeviceKind::kCuda, DType::kBf16);
        const Disagreement low = compare_masks(bf16.mask, reference.mask);
        EXPECT_LE(low.different, 1 + low.edges / 1000)
            << low.different << " of " << low.edges << " gates differ in bf16";
        if (low.different == 0) {
          EXPECT_LT(l2_error(bf16.z.values(), reference.z.values()), 2e-2) << "z in bf16";
          EXPECT_LT(relative_error(bf16.pattern.values(), to_doubles(reference.pattern)), 1e-5);
          for (std::size_t i = 0; i < 3; ++i)
            EXPECT_LT(l2_error(bf16.gradients[i].values(), reference.gradients[i].values()), 3e-2)
                << "gradient " << i << " in bf16";
        }
        // Without maps. Open gates are counted, so that a disagreement shows there and the rest is
        // compared only when there is none.
        const Gated fast = run_gated(rounded, bias, gate, DeviceKind::kCuda, DType::kBf16, false);
        const double pairs = static_cast<double>(e.Tq * (e.Tk - e.Tq) + e.Tq * (e.Tq + 1) / 2);
        double different = 0;
        for (std::int64_t i = 0; i < fast.active.elements(); ++i)
          different += std::abs(static_cast<double>(fast.active.f32()[i]) -
                                static_cast<double>(reference.active.f32()[i])) *
                       pairs;
        EXPECT_LE(different, 1.5 + static_cast<double>(low.edges) / 1000);
        EXPECT_LT(relative_error(fast.expected.values(), to_doubles(reference.expected)), 1e-3);
        if (different < 0.5) {
          EXPECT_LT(l2_error(fast.z.values(), reference.z.values()), 2e-2) << "z without maps";
          for (std::size_t i = 0; i < 4; ++i)
            EXPECT_LT(l2_error(fast.gradients[i].values(), reference.gradients[i].values()), 3e-2)
                << "gradient " << i << " without maps";
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaGatedAttention, testing::Bool(), [](const auto& mode) {
  return std::string(mode.param ? "Sampled" : "Hard");
});

TEST(CudaGateMask, GatesAndTheirStraightThroughGradient) {
  FILIGREE_NEEDS_GPU();
  for (const bool sample : {false, true}) {
    GateOptions gate;
    gate.sample = sample;
    gate.noise = {3, 4, 1, 0};
    // Wide apart from the threshold, so that both devices agree on every gate.
    Tensor scores = random_tensor({2, 3, 5, 9}, 1, -3.0f, 3.0f);
    for (std::int64_t i = 0; i < scores.elements(); i += 7) scores.mutable_f32()[i] = -INFINITY;
    check_cuda({.name = sample ? "sampled" : "hard",
                .inputs = {scores, random_tensor({3}, 2, 0.1f, 0.6f)},
                .op =
                    [&](const std::vector<Variable>& in) {
                      GateOptions options = gate;
                      options.bias = in[1];
                      return gate_mask(in[0], options);
                    },
                .parameter = {false, true},
                .tolerance = 2e-5,
                .with_bf16 = false});
  }
}

// Heads side by side where the kernels read them so, and cut apart elsewhere.
Variable mixed(const Variable& packed, std::int64_t H, std::int64_t G, const GateOptions* gate,
               Variable* expected) {
  GatedAttentionOptions options;
  if (gate != nullptr) options.gate = *gate;
  GatedAttention gated;
  if (attention_reads_packed(packed.value(), packed.shape(), H, G)) {
    if (gate == nullptr) return attention(PackedHeads{packed, H, G});
    gated = gated_attention(PackedHeads{packed, H, G}, options);
  } else {
    const std::int64_t B = packed.size(0), T = packed.size(1), D = packed.size(2) / (H + 2 * G);
    const auto part = [&](std::int64_t begin, std::int64_t heads) {
      return reshape(slice(packed, 2, begin * D, (begin + heads) * D), {B, T, heads, D});
    };
    const Variable q = part(0, H), k = part(H, G), v = part(H + G, G);
    if (gate == nullptr) return attention(q, k, v);
    gated = gated_attention(q, k, v, options);
  }
  *expected = gated.expected;
  return gated.z;
}

TEST(CudaAttention, HeadsSideBySide) {
  FILIGREE_NEEDS_GPU();
  constexpr std::int64_t kHeads = 4;
  EXPECT_TRUE(attention_reads_packed(Tensor::zeros({1}, DType::kBf16, DeviceKind::kCuda),
                                     {2, 70, 12 * 16}, kHeads, kHeads));
  EXPECT_FALSE(attention_reads_packed(Tensor::zeros({1}), {2, 70, 12 * 16}, kHeads, kHeads));
  for (const std::int64_t G : {4, 2})
    for (const std::int64_t D : {16, 64, 80, 128})
      for (const bool gated : {false, true})
        check_cuda({.name = "key heads " + std::to_string(G) + ", D " + std::to_string(D) +
                            (gated ? ", gated" : ""),
                    .inputs = {random_tensor({2, 70, (kHeads + 2 * G) * D}, 1)},
                    .op =
                        [=](const std::vector<Variable>& in) {
                          GateOptions gate;
                          gate.bias = Tensor::full({1}, 0.5f, in[0].value().device());
                          gate.sample = true;
                          Variable expected;
                          return mixed(in[0], kHeads, G, gated ? &gate : nullptr, &expected);
                        },
                    .bf16_tolerance = 3e-2});
}

}  // namespace
}  // namespace filigree

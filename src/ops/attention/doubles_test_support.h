// Attention and gated attention of a device against double precision (reference_test_support.h):
// results and every gradient. For tests.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "ops/attention/attention_shape.h"
#include "ops/attention/reference_test_support.h"
#include "support/check_op.h"

namespace filigree::against_doubles {

struct Extents {
  std::int64_t B, Tq, Tk, H, G, window;
  float soft_cap;
  bool bidirectional = false;

  ScoreMask mask() const { return {window, soft_cap, bidirectional}; }
};

// Lengths that no tile divides, windows smaller and larger than a tile and at its edge, grouped
// keys, queries that follow earlier ones.
inline constexpr Extents kExtents[] = {
    {1, 77, 77, 4, 2, 0, 0.0f},      {2, 70, 131, 2, 1, 20, 0.0f},   {1, 200, 200, 2, 2, 64, 0.0f},
    {1, 150, 150, 4, 2, 0, 1.5f},    {1, 193, 201, 2, 1, 100, 1.5f}, {1, 9, 300, 2, 2, 65, 0.0f},
    {2, 77, 77, 4, 2, 0, 0.0f, true}};
inline constexpr float kScale = 0.3f;
inline constexpr double kMargin = 1e-5;  // of gates to their thresholds

// Of values that bf16 holds.
inline Tensor rounded(const Shape& shape, std::uint64_t seed, float low, float high) {
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

// What a run gives, all on the CPU.
struct Found {
  Tensor z, expected, active, pattern;
  std::vector<Tensor> gradients;  // of q, k, v, bias
};

inline Found run_on(DeviceKind device, const Inputs& in, const Extents& e, ReferenceGate kind,
                    const GateNoise& noise, double edge_weight, DType dtype) {
  std::vector<Variable> variables;
  for (const Tensor& input : {in.q, in.k, in.v})
    variables.emplace_back(input.to(device).to(dtype), true);
  const ScoreMask mask = e.mask();
  const Tensor seed = in.dz.to(device).to(dtype);
  Found found;
  Tape tape;
  if (kind == ReferenceGate::kNone) {
    const Variable z = attention(variables[0], variables[1], variables[2],
                                 {.scale = kScale, .mask = mask, .pattern = &found.pattern});
    found.z = z.value().on_host();
    tape.backward(z, seed);
  } else {
    const Variable bias(in.bias.to(device), true);
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
    tape.backward(add(placed(sum_all(mul(result.z, seed)), device, DType::kF32),
                      scale(sum_all(result.expected), static_cast<float>(edge_weight))));
    variables.push_back(bias);
  }
  found.pattern = found.pattern.on_host();
  for (const Variable& variable : variables) found.gradients.push_back(variable.grad().on_host());
  return found;
}

inline double distance(const Tensor& found, const std::vector<double>& wanted) {
  double difference = 0.0, size = 1e-30;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(found.values()[i]) - wanted[i], 2.0);
    size += wanted[i] * wanted[i];
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / size);
}

inline std::vector<double> summed_over_examples(const std::vector<double>& of, std::int64_t heads) {
  std::vector<double> sums(static_cast<std::size_t>(heads), 0.0);
  for (std::size_t i = 0; i < of.size(); ++i) sums[i % sums.size()] += of[i];
  return sums;
}

inline void check_against_doubles(const Extents& e, std::int64_t D, ReferenceGate kind,
                                  DeviceKind device, DType dtype) {
  SCOPED_TRACE(
      fmt::format("D {}, Tq {}, Tk {}, H {}, G {}, window {}, cap {}, bidirectional "
                  "{}, gate {}, {}",
                  D, e.Tq, e.Tk, e.H, e.G, e.window, e.soft_cap, e.bidirectional,
                  static_cast<int>(kind), name_of(dtype)));
  AttentionReference reference;
  reference.shape =
      attention_shape("test", {e.B, e.Tq, e.H, D}, {e.B, e.Tk, e.G, D}, -1, kScale, e.mask());
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

  const Found found = run_on(device, *in, e, kind, reference.noise, reference.edge_weight, dtype);
  const Found again = run_on(device, *in, e, kind, reference.noise, reference.edge_weight, dtype);
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

inline constexpr ReferenceGate kGates[] = {ReferenceGate::kNone, ReferenceGate::kHard,
                                           ReferenceGate::kSampled};

}  // namespace filigree::against_doubles

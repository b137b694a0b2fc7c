#include "nn/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/check_op.h"

namespace filigree {
namespace {

constexpr std::int64_t kWidth = 6, kHidden = 5, kExperts = 4, kTokens = 7;

class Mixture : public testing::Test {
 protected:
  Mixture() {
    const auto layer = [&](std::int64_t out, std::int64_t in) {
      return LinearWeight{Variable(random_tensor({out, in}, ++seed_), true), {}, true};
    };
    weights_.router = layer(kExperts, kWidth);
    for (std::int64_t e = 0; e < kExperts; ++e)
      weights_.experts.push_back(
          {layer(kHidden, kWidth), layer(kHidden, kWidth), layer(kWidth, kHidden)});
    weights_.activation = Activation::kSilu;
    weights_.per_token = 2;
  }

  Tensor run(Taps* taps = nullptr) const {
    const NoGrad no_grad;
    if (taps != nullptr)
      taps->bind(
          {"hook_router_logits", "hook_expert_weights", "hook_expert_gates", "hook_expert_out"});
    return mixture_of_experts(x_, weights_, TapScope(taps, "")).value();
  }
  std::uint64_t seed_ = 20;
  MlpWeights weights_;
  Variable x_{random_tensor({1, kTokens, kWidth}, 9)};
};

TEST_F(Mixture, ChoosesTheExpertsWithTheLargestWeights) {
  Taps taps;
  for (const char* name : {"hook_expert_weights", "hook_expert_gates"}) taps.observe(name);
  run(&taps);
  const Tensor &all = taps.value("hook_expert_weights"), &gates = taps.value("hook_expert_gates");
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const float *weight = all.f32() + t * kExperts, *gate = gates.f32() + t * kExperts;
    float least = 1.0f, most_of_others = 0.0f;
    std::int64_t chosen = 0;
    for (std::int64_t e = 0; e < kExperts; ++e) {
      if (gate[e] == 0.0f) {
        most_of_others = std::max(most_of_others, weight[e]);
        continue;
      }
      EXPECT_EQ(gate[e], weight[e]);
      least = std::min(least, weight[e]);
      ++chosen;
    }
    EXPECT_EQ(chosen, 2);
    EXPECT_GT(least, most_of_others);
  }
  weights_.gates_sum_to_one = true;
  Taps normed;
  normed.observe("hook_expert_gates");
  run(&normed);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    float sum = 0.0f;
    for (std::int64_t e = 0; e < kExperts; ++e)
      sum += normed.value("hook_expert_gates").f32()[t * kExperts + e];
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
  }
}

// What each expert adds sums up to the result, and is nothing where it is not chosen.
TEST_F(Mixture, OutputsOfExpertsAreTheWhole) {
  Taps taps;
  for (const char* name : {"hook_expert_out", "hook_expert_gates"}) taps.observe(name);
  const Tensor plain = run(), whole = run(&taps);
  EXPECT_LT(relative_error(whole.values(), to_doubles(plain)), 1e-6);
  const Tensor &out = taps.value("hook_expert_out"), &gates = taps.value("hook_expert_gates");
  ASSERT_EQ(out.shape(), Shape({1, kTokens, kExperts, kWidth}));
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    if (gates.f32()[i / kWidth] == 0.0f) {
      EXPECT_EQ(out.f32()[i], 0.0f);
    }
  }
}

// An expert is switched on and off by its gate.
TEST_F(Mixture, GatesMayBeChanged) {
  const auto with_gates = [&](float first, float others) {
    Taps taps;
    taps.intervene("hook_expert_gates", [&](const Variable& gates) {
      Tensor changed = gates.value().clone();
      for (std::int64_t i = 0; i < changed.elements(); ++i)
        changed.mutable_f32()[i] = i % kExperts == 0 ? first : others;
      return Variable(changed);
    });
    return run(&taps);
  };
  for (const float x : with_gates(0.0f, 0.0f).values()) EXPECT_EQ(x, 0.0f);
  const NoGrad no_grad;
  const ExpertWeights& expert = weights_.experts[0];
  const Tensor alone =
      linear(gated_product(linear(x_, expert.gate), linear(x_, expert.in), Activation::kSilu),
             expert.out)
          .value();
  EXPECT_LT(relative_error(with_gates(1.0f, 0.0f).values(), to_doubles(alone)), 1e-6);
}

TEST_F(Mixture, ExpertsThatNoTokenChoosesHaveGradientsOfZero) {
  // The last expert's logit is far below those of the others.
  x_ = Tensor::full({1, kTokens, kWidth}, 1.0f);
  for (std::int64_t i = 0; i < kWidth; ++i)
    weights_.router.weight.mutable_value().mutable_f32()[(kExperts - 1) * kWidth + i] = -50.0f;
  Tape tape;
  tape.backward(sum_all(square(mixture_of_experts(x_, weights_, TapScope()))));
  const auto largest = [](const LinearWeight& w) {
    float most = -1.0f;
    if (w.weight.grad().defined())
      for (const float x : w.weight.grad().values()) most = std::max(most, std::abs(x));
    return most;
  };
  EXPECT_EQ(largest(weights_.experts[kExperts - 1].in), 0.0f);
  float all = 0.0f;
  for (const ExpertWeights& expert : weights_.experts) all = std::max(all, largest(expert.in));
  EXPECT_GT(all, 0.0f);
}

TEST_F(Mixture, ValuesThatAreNoNumbersDoNoHarm) {
  weights_.router.weight.mutable_value().mutable_f32()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(run().shape(), Shape({1, kTokens, kWidth}));
}

}  // namespace
}  // namespace filigree

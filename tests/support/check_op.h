// The tests that every operation gets.
//
// check_op runs an operation on every vector level the processor has and on 1, 2 and 3 threads, and
// checks
//   - the value against a reference computed in double precision,
//   - that the bits do not depend on the thread count,
//   - every gradient against central differences of that reference.
// With FILIGREE_TIME_OPS=1 in the environment it also prints how long forward and backward take.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "runtime/cpu/simd.h"

namespace filigree {

using Doubles = std::vector<double>;

struct OpCase {
  std::string name;
  std::vector<Tensor> inputs;
  std::function<Variable(const std::vector<Variable>&)> op;
  // The flat values of the inputs -> the flat values of the result.
  std::function<Doubles(const std::vector<Doubles>&)> reference;
  double tolerance = 2e-6;           // of values, relative to the largest magnitude
  double gradient_tolerance = 2e-5;  // likewise
  std::vector<bool> constant = {};   // inputs without a gradient
};

// Reproducible values in [low, high).
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, float low = -1.0f,
                            float high = 1.0f) {
  Tensor tensor = Tensor::empty(shape);
  fill_uniform({tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())}, seed, 7);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.mutable_f32()[i] = low + (high - low) * tensor.f32()[i];
  return tensor;
}

inline Doubles to_doubles(const Tensor& tensor) {
  return Doubles(tensor.values().begin(), tensor.values().end());
}

// Largest |a - b|, relative to the largest |b|.
inline double relative_error(std::span<const float> a, const Doubles& b) {
  double worst = 0.0, scale = 1e-30;
  for (double value : b)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto value = static_cast<double>(a[i]);
    if (value == b[i]) continue;  // also equal infinities
    const double error = std::abs(value - b[i]) / scale;
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

// The vector levels this processor has; restores the level it started with.
class EveryLevel {
 public:
  EveryLevel() : original_(simd_level()) {}
  ~EveryLevel() { set_simd_level(original_); }
  EveryLevel(const EveryLevel&) = delete;
  EveryLevel& operator=(const EveryLevel&) = delete;

  static std::vector<SimdLevel> available() {
    std::vector<SimdLevel> levels;
    for (SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512})
      if (set_simd_level(level) == level) levels.push_back(level);
    return levels;
  }

 private:
  SimdLevel original_;
};

namespace check_op_detail {

struct Run {
  Tensor value;
  std::vector<Tensor> gradients;
};

inline Run run(const OpCase& c, const Tensor& seed) {
  std::vector<Variable> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    inputs.emplace_back(c.inputs[i], i >= c.constant.size() || !c.constant[i]);
  Tape tape;
  const Variable result = c.op(inputs);
  Run out;
  out.value = result.value();
  tape.backward(result, seed.reshape(result.shape()));
  for (const Variable& input : inputs) out.gradients.push_back(input.grad());
  return out;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() &&
         (!a.defined() ||
          (a.shape() == b.shape() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw())));
}

inline void time_op(const OpCase& c, const Tensor& seed) {
  using Clock = std::chrono::steady_clock;
  double best_forward = 1e30, best_both = 1e30;
  for (int i = 0; i < 10; ++i) {
    const auto start = Clock::now();
    c.op(std::vector<Variable>(c.inputs.begin(), c.inputs.end()));
    const auto middle = Clock::now();
    run(c, seed);
    best_forward = std::min(best_forward, std::chrono::duration<double>(middle - start).count());
    best_both = std::min(best_both, std::chrono::duration<double>(Clock::now() - middle).count());
  }
  std::printf("%-40s %-8s forward %9.1f us  with backward %9.1f us\n", c.name.c_str(),
              name_of(simd_level()), best_forward * 1e6, best_both * 1e6);
}

}  // namespace check_op_detail

inline void check_op(const OpCase& c) {
  using check_op_detail::Run, check_op_detail::run, check_op_detail::same_bits,
      check_op_detail::time_op;
  SCOPED_TRACE(c.name);
  std::vector<Doubles> exact_inputs;
  for (const Tensor& input : c.inputs) exact_inputs.push_back(to_doubles(input));
  const Doubles expected = c.reference(exact_inputs);
  const Tensor seed = random_tensor({static_cast<std::int64_t>(expected.size())}, 99);

  // Central differences of sum(seed * reference) at a sample of places.
  struct Slope {
    std::size_t input, place;
    double value;
  };
  std::vector<Slope> slopes;
  std::vector<double> largest(c.inputs.size(), 1e-30);
  const auto objective = [&](const std::vector<Doubles>& at) {
    const Doubles y = c.reference(at);
    double total = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i)
      if (std::isfinite(y[i])) total += y[i] * static_cast<double>(seed.f32()[i]);
    return total;
  };
  Random random(5);
  for (std::size_t input = 0; input < c.inputs.size(); ++input) {
    if (input < c.constant.size() && c.constant[input]) continue;
    const std::size_t count = exact_inputs[input].size();
    for (std::size_t probe = 0; probe < std::min<std::size_t>(count, 24); ++probe) {
      const std::size_t place = count <= 24 ? probe : random.below(count);
      std::vector<Doubles> moved = exact_inputs;
      const double step = 1e-5;
      moved[input][place] += step;
      const double above = objective(moved);
      moved[input][place] -= 2 * step;
      const double slope = (above - objective(moved)) / (2 * step);
      slopes.push_back({input, place, slope});
      largest[input] = std::max(largest[input], std::abs(slope));
    }
  }

  const int threads_before = num_threads();
  EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    SCOPED_TRACE(name_of(level));
    Run first;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      const Run result = run(c, seed);
      if (threads == 1) {
        first = result;
        ASSERT_EQ(static_cast<std::size_t>(result.value.elements()), expected.size());
        EXPECT_LT(relative_error(result.value.values(), expected), c.tolerance);
        for (const Slope& slope : slopes) {
          const Tensor& gradient = result.gradients[slope.input];
          ASSERT_TRUE(gradient.defined()) << "input " << slope.input << " got no gradient";
          const auto found = static_cast<double>(gradient.f32()[slope.place]);
          EXPECT_LT(std::abs(found - slope.value) / largest[slope.input], c.gradient_tolerance)
              << "input " << slope.input << " at " << slope.place << ": " << found << " against "
              << slope.value;
        }
      } else {
        EXPECT_TRUE(same_bits(first.value, result.value)) << threads << " threads";
        for (std::size_t i = 0; i < first.gradients.size(); ++i)
          EXPECT_TRUE(same_bits(first.gradients[i], result.gradients[i]))
              << threads << " threads, gradient " << i;
      }
    }
    set_num_threads(threads_before);
    if (std::getenv("FILIGREE_TIME_OPS") != nullptr) time_op(c, seed);
  }
}

}  // namespace filigree

// The tests that every operation gets on the GPU.
//
// check_cuda runs an operation on the CPU and on the GPU with the same inputs and compares the
// value and every gradient: in f32 by the largest error relative to the largest magnitude, and with
// bf16 activations by the relative L2 distance to the CPU's result for the same rounded inputs.
// Every run on the GPU is done twice and must give the same bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/device.h"
#include "support/check_op.h"

// Begins every test that computes on a GPU.
#define FILIGREE_NEEDS_GPU()                                                       \
  do {                                                                             \
    if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU"; \
  } while (false)

namespace filigree {

struct CudaCase {
  std::string name;
  std::vector<Tensor> inputs;  // f32 on the CPU
  std::function<Variable(const std::vector<Variable>&)> op;
  std::vector<bool> constant = {};   // inputs without a gradient
  std::vector<bool> parameter = {};  // inputs that stay f32 where activations are bf16
  double tolerance = 1e-5;
  double bf16_tolerance = 1e-2;
  bool with_bf16 = true;
};

// ||a - b|| / ||b||; equal infinities do not count.
inline double l2_error(std::span<const float> a, std::span<const float> b) {
  double difference = 0.0, size = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i] && std::isinf(a[i])) continue;
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2.0);
    size += std::pow(static_cast<double>(b[i]), 2.0);
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / size);
}

namespace check_cuda_detail {

struct Run {
  Tensor value;
  std::vector<Tensor> gradients;  // undefined for constants
};

inline bool listed(const std::vector<bool>& flags, std::size_t i) {
  return i < flags.size() && flags[i];
}

// Everything comes back as f32 on the CPU.
inline Run run(const CudaCase& c, const std::vector<Tensor>& inputs, DeviceKind device,
               DType dtype) {
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor there = inputs[i].to(device);
    const bool keep = listed(c.parameter, i) || inputs[i].dtype() != DType::kF32;
    variables.emplace_back(keep ? there : there.to(dtype), !listed(c.constant, i));
  }
  Tape tape;
  const Variable result = c.op(variables);
  EXPECT_EQ(result.value().device(), device) << "the result lies elsewhere";
  Run out;
  out.value = result.value().on_host();
  if (result.requires_grad()) {
    // Rounded on both devices, so that both start from the same numbers.
    const Tensor seed = random_tensor(result.shape(), 99).to(DType::kBf16).to(DType::kF32);
    tape.backward(result, seed.to(device).to(result.value().dtype()));
  }
  for (const Variable& variable : variables)
    out.gradients.push_back(variable.grad().defined() ? variable.grad().on_host() : Tensor());
  return out;
}

inline void compare(const Run& found, const Run& wanted, double tolerance, bool by_norm) {
  const auto error = [&](const Tensor& a, const Tensor& b) {
    return by_norm ? l2_error(a.values(), b.values()) : relative_error(a.values(), to_doubles(b));
  };
  // Of few numbers the roundings to bf16 do not average out.
  const auto limit = [&](const Tensor& b) {
    const auto count = static_cast<double>(std::max<std::int64_t>(b.elements(), 1));
    return by_norm ? tolerance * (1.0 + 4.0 / std::sqrt(count)) : tolerance;
  };
  ASSERT_EQ(found.value.shape(), wanted.value.shape());
  EXPECT_LT(error(found.value, wanted.value), limit(wanted.value)) << "the value";
  for (std::size_t i = 0; i < wanted.gradients.size(); ++i) {
    ASSERT_EQ(found.gradients[i].defined(), wanted.gradients[i].defined()) << "gradient " << i;
    if (!wanted.gradients[i].defined()) continue;
    EXPECT_LT(error(found.gradients[i], wanted.gradients[i]), limit(wanted.gradients[i]))
        << "gradient " << i;
  }
}

inline void check_twice(const CudaCase& c, const std::vector<Tensor>& inputs, DType dtype,
                        const Run& wanted, double tolerance, bool by_norm) {
  const Run first = run(c, inputs, DeviceKind::kCuda, dtype);
  compare(first, wanted, tolerance, by_norm);
  const Run second = run(c, inputs, DeviceKind::kCuda, dtype);
  EXPECT_TRUE(check_op_detail::same_bits(first.value, second.value)) << "the value's bits differ";
  for (std::size_t i = 0; i < first.gradients.size(); ++i)
    EXPECT_TRUE(check_op_detail::same_bits(first.gradients[i], second.gradients[i]))
        << "the bits of gradient " << i << " differ";
}

}  // namespace check_cuda_detail

inline void check_cuda(const CudaCase& c) {
  using namespace check_cuda_detail;
  SCOPED_TRACE(c.name);
  {
    SCOPED_TRACE("f32");
    const Run wanted = run(c, c.inputs, DeviceKind::kCpu, DType::kF32);
    check_twice(c, c.inputs, DType::kF32, wanted, c.tolerance, false);
  }
  if (!c.with_bf16) return;
  SCOPED_TRACE("bf16");
  std::vector<Tensor> rounded = c.inputs;
  for (std::size_t i = 0; i < rounded.size(); ++i)
    if (!listed(c.parameter, i) && rounded[i].dtype() == DType::kF32)
      rounded[i] = rounded[i].to(DType::kBf16).to(DType::kF32);
  const Run wanted = run(c, rounded, DeviceKind::kCpu, DType::kF32);
  check_twice(c, rounded, DType::kBf16, wanted, c.bf16_tolerance, true);
}

}  // namespace filigree

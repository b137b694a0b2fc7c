#pragma once

#include <cstdint>

namespace filigree {

struct SoftmaxArgs {
  std::int64_t rows = 0, width = 0;
  bool logarithm = false;
  const float* x = nullptr;
  float* y = nullptr;
};

// softmax: dx = y (dy - sum y dy); log softmax: dx = dy - exp(y) sum dy.
struct SoftmaxGradArgs {
  std::int64_t rows = 0, width = 0;
  bool logarithm = false;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;
};

namespace cpu {
void softmax(const SoftmaxArgs& args);
void softmax_grad(const SoftmaxGradArgs& args);
}  // namespace cpu
}  // namespace filigree

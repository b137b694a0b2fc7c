#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct SoftmaxArgs {
  std::int64_t rows = 0, width = 0;
  bool logarithm = false;
  const T* x = nullptr;
  T* y = nullptr;
};

// softmax: dx = y (dy - sum y dy); log softmax: dx = dy - exp(y) sum dy.
template <typename T = float>
struct SoftmaxGradArgs {
  std::int64_t rows = 0, width = 0;
  bool logarithm = false;
  const T* y = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;
};

namespace cpu {
void softmax(const SoftmaxArgs<>& args);
void softmax_grad(const SoftmaxGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void softmax(const SoftmaxArgs<T>& args);
template <typename T>
void softmax_grad(const SoftmaxGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

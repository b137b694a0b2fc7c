#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct CrossEntropyArgs {
  std::int64_t rows = 0, width = 0;
  const T* logits = nullptr;
  const std::int32_t* targets = nullptr;  // negative: ignored
  float* losses = nullptr;                // [rows]
  float* log_sum_exp = nullptr;           // [rows]
};

// dlogits = (softmax - one_hot(target)) * factor, zero for ignored rows. May be in place.
template <typename T = float>
struct CrossEntropyGradArgs {
  std::int64_t rows = 0, width = 0;
  const T* logits = nullptr;
  const std::int32_t* targets = nullptr;
  const float* log_sum_exp = nullptr;
  float factor = 1.0f;
  const float* upstream = nullptr;  // one number the factor is multiplied by; null: 1
  T* dlogits = nullptr;
};

namespace cpu {
void cross_entropy(const CrossEntropyArgs<>& args);
void cross_entropy_grad(const CrossEntropyGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void cross_entropy(const CrossEntropyArgs<T>& args);
template <typename T>
void cross_entropy_grad(const CrossEntropyGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

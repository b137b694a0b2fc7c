// Reductions of [outer, extent, inner] over the middle axis. Sums are taken in double precision:
// they are short on time spent but feed losses and statistics.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float, typename Out = T>
struct SumArgs {
  std::int64_t outer = 0, extent = 0, inner = 0;
  double factor = 1.0;
  const T* x = nullptr;
  Out* sums = nullptr;  // [outer, inner], each sum times the factor
};

// The gradient of a sum: dx[o, k, i] = grad[o, i] * factor.
template <typename T = float>
struct SpreadArgs {
  std::int64_t outer = 0, extent = 0, inner = 0;
  float factor = 1.0f;
  const T* grad = nullptr;
  T* dx = nullptr;
};

template <typename T = float>
struct MaximumArgs {
  std::int64_t outer = 0, extent = 0, inner = 0;
  const T* x = nullptr;
  T* values = nullptr;             // [outer, inner], or null
  std::int32_t* places = nullptr;  // [outer, inner]: of the first largest
};

// dx is zero but for the places.
template <typename T = float>
struct MaximumGradArgs {
  std::int64_t outer = 0, extent = 0, inner = 0;
  const T* grad = nullptr;
  const std::int32_t* places = nullptr;
  T* dx = nullptr;  // all zero before
};

namespace cpu {
void sum(const SumArgs<>& args);
void spread(const SpreadArgs<>& args);
void maximum(const MaximumArgs<>& args);
void maximum_grad(const MaximumGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T, typename Out>
void sum(const SumArgs<T, Out>& args);
template <typename T>
void spread(const SpreadArgs<T>& args);
template <typename T>
void maximum(const MaximumArgs<T>& args);
template <typename T>
void maximum_grad(const MaximumGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

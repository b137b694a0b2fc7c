// Arguments of the kernels of normalisation. T is the element type of the activations; weights,
// statistics and weights' gradients are f32. Without memory for means nothing is centred: the root
// mean square takes the place of the deviation.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct NormArgs {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0.0f;
  const T* x = nullptr;           // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width], or null
  T* y = nullptr;                 // [rows, width]
  float* mean = nullptr;          // [rows], or null
  float* inverse = nullptr;       // [rows], 1 / sqrt(variance or mean square + epsilon)
};

template <typename T = float>
struct NormGradArgs {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;  // or null
  const float* inverse = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;  // written, or added to, or null
  bool add_to_dx = false;
  float* dweight = nullptr;  // added to, or null
  float* dbias = nullptr;    // added to, or null
};

namespace cpu {
void norm(const NormArgs<>& args);
void norm_grad(const NormGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void norm(const NormArgs<T>& args);
template <typename T>
void norm_grad(const NormGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

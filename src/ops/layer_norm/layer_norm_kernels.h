// Arguments of the kernels of layer normalisation. T is the element type of the activations;
// weights, statistics and weights' gradients are f32.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct LayerNormArgs {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0.0f;
  const T* x = nullptr;           // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  T* y = nullptr;                 // [rows, width]
  float* mean = nullptr;          // [rows]
  float* inverse = nullptr;       // [rows], 1 / sqrt(variance + epsilon)
};

template <typename T = float>
struct LayerNormGradArgs {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;           // written, or null
  float* dweight = nullptr;  // added to, or null
  float* dbias = nullptr;    // added to, or null
};

namespace cpu {
void layer_norm(const LayerNormArgs<>& args);
void layer_norm_grad(const LayerNormGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void layer_norm(const LayerNormArgs<T>& args);
template <typename T>
void layer_norm_grad(const LayerNormGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

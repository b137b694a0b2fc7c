#pragma once

#include <cstdint>

namespace filigree {

struct LayerNormArgs {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0.0f;
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  float* y = nullptr;             // [rows, width]
  float* mean = nullptr;          // [rows]
  float* inverse = nullptr;       // [rows], 1 / sqrt(variance + epsilon)
};

struct LayerNormGradArgs {
  std::int64_t rows = 0, width = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;       // written, or null
  float* dweight = nullptr;  // added to, or null
  float* dbias = nullptr;    // added to, or null
};

namespace cpu {
void layer_norm(const LayerNormArgs& args);
void layer_norm_grad(const LayerNormGradArgs& args);
}  // namespace cpu
}  // namespace filigree

// The functions of filigree/activation.h and their derivatives, in device code.
#pragma once

#include "filigree/activation.h"

namespace filigree::cuda {

// x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), as on the CPU.
__device__ inline float gelu_new(float x) {
  return x / (1.0f + expf(x * (-1.5957691216057308f - 0.07135481627260025f * x * x)));
}

// Its derivative: with s = 1 / (1 + e^-2u), s + x s (1 - s) d(2u)/dx.
__device__ inline float gelu_new_slope(float x) {
  const float square = x * x;
  // Beyond this e^-2u overflows; the slope is 0 there all the same.
  const float e = expf(fminf(x * (-1.5957691216057308f - 0.07135481627260025f * square), 88.0f));
  const float s = 1.0f / (1.0f + e);
  return s + x * s * (e * s) * (1.5957691216057308f + 0.21406444881780073f * square);
}

__device__ inline float silu_slope(float x) {
  const float e = expf(fminf(-x, 88.0f));
  const float s = 1.0f / (1.0f + e);
  return s + x * s * (e * s);
}

__device__ inline float activated(Activation f, float x) {
  switch (f) {
    case Activation::kNone: return x;
    case Activation::kGeluNew: return gelu_new(x);
    case Activation::kGelu: return x * normcdff(x);
    case Activation::kRelu: return x < 0.0f ? 0.0f : x;  // keeps a NaN
    case Activation::kSilu: return x / (1.0f + expf(-x));
  }
  return x;
}

__device__ inline float activation_slope(Activation f, float x) {
  switch (f) {
    case Activation::kNone: return 1.0f;
    case Activation::kGeluNew: return gelu_new_slope(x);
    case Activation::kGelu: return normcdff(x) + 0.398942280401f * x * expf(-0.5f * x * x);
    case Activation::kRelu: return x > 0.0f ? 1.0f : 0.0f;
    case Activation::kSilu: return silu_slope(x);
  }
  return x;
}

}  // namespace filigree::cuda

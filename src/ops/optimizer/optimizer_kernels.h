#pragma once

#include <cstdint>

#include "filigree/device.h"

namespace filigree {

struct AdamWArgs {
  std::int64_t count = 0;
  float decay = 1.0f;  // 1 - lr * weight decay
  float beta1 = 0.0f, beta2 = 0.0f, epsilon = 0.0f, gradient_scale = 1.0f;
  float step_size = 0.0f;     // lr / (1 - beta1^t)
  float second_scale = 1.0f;  // 1 / sqrt(1 - beta2^t)
  const float* gradient = nullptr;
  float* weight = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  Bf16* copy = nullptr;  // receives the new weight rounded to bf16; on the GPU, or null
};

struct SquaresArgs {
  const float* x = nullptr;
  std::int64_t count = 0;
};

namespace cpu {
void adamw(const AdamWArgs& args);
double sum_of_squares(const float* x, std::int64_t count);
}  // namespace cpu

namespace cuda {
// One step of many arrays, in few launches.
void adamw(const AdamWArgs* arrays, std::int64_t count);
// The sum of squares over all arrays; waits for the result.
double sum_of_squares(const SquaresArgs* arrays, std::int64_t count);
}  // namespace cuda
}  // namespace filigree

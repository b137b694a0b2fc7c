#pragma once

#include <cstdint>

namespace filigree {

// Rows of logits turned into losses and, with `gradient`, overwritten by the gradient of
// ((1 - distillation) cross entropy + distillation divergence) * factor. Rows with a negative
// target have no loss and no gradient.
template <typename T = float>
struct LossRowsArgs {
  std::int64_t rows = 0, width = 0, step = 0;  // rows begin `step` elements apart
  T* logits = nullptr;
  T* teacher = nullptr;  // logits of the teacher or null; the CPU uses the memory for scratch
  const std::int32_t* targets = nullptr;
  float distillation = 0.0f;
  bool gradient = false;
  float factor = 1.0f;
  float* cross_entropy = nullptr;          // [rows]
  float* divergence = nullptr;             // [rows], with a teacher
  float* teacher_cross_entropy = nullptr;  // [rows], with a teacher
};

namespace cpu {
void loss_rows(const LossRowsArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void loss_rows(const LossRowsArgs<T>& args);

// x *= *factor, a number on the device.
template <typename T>
void scale_by(T* x, std::int64_t count, const float* factor);
}  // namespace cuda
}  // namespace filigree

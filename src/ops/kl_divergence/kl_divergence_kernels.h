#pragma once

#include <cstdint>

namespace filigree {

template <typename T = float>
struct KlArgs {
  std::int64_t rows = 0, width = 0;
  const T* teacher = nullptr;
  const T* student = nullptr;
  const std::int32_t* targets = nullptr;  // rows whose target is `ignored` give 0; null: none
  std::int32_t ignored = 0;
  float* divergence = nullptr;           // [rows]
  float* teacher_log_sum_exp = nullptr;  // [rows]
  float* student_log_sum_exp = nullptr;  // [rows]
};

template <typename T = float>
struct KlGradArgs {
  std::int64_t rows = 0, width = 0;
  const T* teacher = nullptr;
  const T* student = nullptr;
  const std::int32_t* targets = nullptr;
  std::int32_t ignored = 0;
  const float* teacher_log_sum_exp = nullptr;
  const float* student_log_sum_exp = nullptr;
  float factor = 1.0f;
  const float* upstream = nullptr;  // one number the factor is multiplied by; null: 1
  T* dstudent = nullptr;  // (softmax(student) - softmax(teacher)) * factor; may be `student`
};

namespace cpu {
void kl_divergence(const KlArgs<>& args);
void kl_divergence_grad(const KlGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void kl_divergence(const KlArgs<T>& args);
template <typename T>
void kl_divergence_grad(const KlGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

#pragma once

#include <cstdint>

namespace filigree {

struct KlArgs {
  std::int64_t rows = 0, width = 0;
  const float* teacher = nullptr;
  const float* student = nullptr;
  const std::int32_t* targets = nullptr;  // rows whose target is `ignored` give 0; null: none
  std::int32_t ignored = 0;
  float* divergence = nullptr;           // [rows]
  float* teacher_log_sum_exp = nullptr;  // [rows]
  float* student_log_sum_exp = nullptr;  // [rows]
};

struct KlGradArgs {
  std::int64_t rows = 0, width = 0;
  const float* teacher = nullptr;
  const float* student = nullptr;
  const std::int32_t* targets = nullptr;
  std::int32_t ignored = 0;
  const float* teacher_log_sum_exp = nullptr;
  const float* student_log_sum_exp = nullptr;
  float factor = 1.0f;
  float* dstudent = nullptr;  // (softmax(student) - softmax(teacher)) * factor
};

namespace cpu {
void kl_divergence(const KlArgs& args);
void kl_divergence_grad(const KlGradArgs& args);
}  // namespace cpu
}  // namespace filigree

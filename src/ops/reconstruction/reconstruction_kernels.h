#pragma once

#include <cstdint>

namespace filigree {

struct ReconstructionArgs {
  std::int64_t layers = 0, rows = 0, width = 0;
  const float* written = nullptr;  // [layers, rows, width]
  const float* bias = nullptr;     // [layers, width] or null
  const float* targets = nullptr;
  float* difference = nullptr;
  float* column_sums = nullptr;  // [layers, width]: of the difference over the rows
  float* squares = nullptr;      // [2, layers]
};

// to = 2 factor grad from, of a gradient of one number
struct ErrorGradArgs {
  std::int64_t count = 0;
  float factor = 1.0f;
  const float* grad = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
};

namespace cuda {
void reconstruction(const ReconstructionArgs& args);
void error_grad(const ErrorGradArgs& args);
}  // namespace cuda
}  // namespace filigree

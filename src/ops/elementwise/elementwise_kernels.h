#pragma once

#include <array>
#include <cstdint>

namespace filigree {

enum class Binary { kAdd, kSub, kMul, kDiv };
enum class Unary { kScaleShift, kExp, kLog, kSqrt, kSquare, kTanh, kGelu };

// out[r, c] = a(r)[c * a_step] op b(r)[c * b_step], where row r of an operand starts at its offset
// for the row's index on the outer axes.
struct BinaryArgs {
  static constexpr int kAxes = 5;  // outer axes
  Binary op = Binary::kAdd;
  std::array<std::int64_t, kAxes> extents = {};  // outermost first
  std::array<std::int64_t, kAxes> a_strides = {}, b_strides = {};
  std::int64_t rows = 0, cols = 0;
  std::int64_t a_step = 1, b_step = 1;  // 0 or 1
  const float* a = nullptr;
  const float* b = nullptr;
  float* out = nullptr;
};

struct UnaryArgs {
  Unary op = Unary::kExp;
  std::int64_t count = 0;
  float factor = 1.0f, offset = 0.0f;  // kScaleShift: factor * x + offset
  const float* x = nullptr;
  float* out = nullptr;
};

// dx = grad * f'(x), with y = f(x) at hand.
struct UnaryGradArgs {
  Unary op = Unary::kExp;
  std::int64_t count = 0;
  float factor = 1.0f;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* grad = nullptr;
  float* dx = nullptr;
};

namespace cpu {
void binary(const BinaryArgs& args);
void unary(const UnaryArgs& args);
void unary_grad(const UnaryGradArgs& args);
}  // namespace cpu
}  // namespace filigree

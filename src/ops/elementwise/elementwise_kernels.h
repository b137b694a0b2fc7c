#pragma once

#include <array>
#include <cstdint>

namespace filigree {

enum class Binary { kAdd, kSub, kMul, kDiv };
enum class Unary { kScaleShift, kExp, kLog, kSqrt, kSquare, kTanh, kClamp };

inline constexpr int kOuterAxes = 5;

// out[r, c] = a(r)[c * a_step] op b(r)[c * b_step], where row r of an operand starts at its offset
// for the row's index on the outer axes.
template <typename T = float>
struct BinaryArgs {
  Binary op = Binary::kAdd;
  std::array<std::int64_t, kOuterAxes> extents = {};  // outermost first
  std::array<std::int64_t, kOuterAxes> a_strides = {}, b_strides = {};
  std::int64_t rows = 0, cols = 0;
  std::int64_t a_step = 1, b_step = 1;  // 0 or 1
  const T* a = nullptr;
  const T* b = nullptr;
  T* out = nullptr;
};

template <typename T = float>
struct UnaryArgs {
  Unary op = Unary::kExp;
  std::int64_t count = 0;
  float factor = 1.0f, offset = 0.0f;  // kScaleShift: factor * x + offset; kClamp: the bound
  const T* x = nullptr;
  T* out = nullptr;
};

// dx = grad * f'(x), with y = f(x) at hand.
template <typename T = float>
struct UnaryGradArgs {
  Unary op = Unary::kExp;
  std::int64_t count = 0;
  float factor = 1.0f;
  const T* x = nullptr;
  const T* y = nullptr;
  const T* grad = nullptr;
  T* dx = nullptr;
};

namespace cpu {
void binary(const BinaryArgs<>& args);
void unary(const UnaryArgs<>& args);
void unary_grad(const UnaryGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void binary(const BinaryArgs<T>& args);
template <typename T>
void unary(const UnaryArgs<T>& args);
template <typename T>
void unary_grad(const UnaryGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree

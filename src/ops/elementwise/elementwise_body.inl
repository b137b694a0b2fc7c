// Kernels of elementwise_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_map.inl"

template <typename Operation>
[[gnu::always_inline]] inline void binary_row(const BinaryArgs<>& args, const float* a,
                                              const float* b, float* out,
                                              const Operation& operation) {
  // The three shapes of a row are spelled out so that each loop vectorises.
  if (args.a_step == 1 && args.b_step == 1)
    for (std::int64_t c = 0; c < args.cols; ++c) out[c] = operation(a[c], b[c]);
  else if (args.a_step == 1)
    for (std::int64_t c = 0; c < args.cols; ++c) out[c] = operation(a[c], b[0]);
  else if (args.b_step == 1)
    for (std::int64_t c = 0; c < args.cols; ++c) out[c] = operation(a[0], b[c]);
  else
    for (std::int64_t c = 0; c < args.cols; ++c) out[c] = operation(a[0], b[0]);
}

inline void binary_rows(const BinaryArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* a = args.a;
    const float* b = args.b;
    std::int64_t rest = r;
    for (int axis = kOuterAxes - 1; axis >= 0; --axis) {
      const auto k = static_cast<std::size_t>(axis);
      a += rest % args.extents[k] * args.a_strides[k];
      b += rest % args.extents[k] * args.b_strides[k];
      rest /= args.extents[k];
    }
    float* out = args.out + r * args.cols;
    switch (args.op) {
      case Binary::kAdd: binary_row(args, a, b, out, [](float x, float y) { return x + y; }); break;
      case Binary::kSub: binary_row(args, a, b, out, [](float x, float y) { return x - y; }); break;
      case Binary::kMul: binary_row(args, a, b, out, [](float x, float y) { return x * y; }); break;
      case Binary::kDiv: binary_row(args, a, b, out, [](float x, float y) { return x / y; }); break;
    }
  }
}

inline void unary_range(const UnaryArgs<>& args, std::int64_t begin, std::int64_t end) {
  const auto each = [&](const auto& function) {
    map_vectors(begin, end, args.x, args.x, args.x, args.out,
                [&](Vec x, Vec, Vec) { return function(x); });
  };
  switch (args.op) {
    case Unary::kScaleShift:
      each([&](Vec x) -> Vec { return x * args.factor + args.offset; });
      break;
    case Unary::kExp: each([](Vec x) { return exp(x); }); break;
    case Unary::kSquare: each([](Vec x) -> Vec { return x * x; }); break;
    case Unary::kTanh: each([](Vec x) { return tanh(x); }); break;
    case Unary::kClamp:
      each([&](Vec x) -> Vec {
        const Vec most = broadcast(args.factor), least = -most;
        const Vec above = x < least ? least : x;
        return above > most ? most : above;
      });
      break;
    case Unary::kSqrt:
      for (std::int64_t i = begin; i < end; ++i) args.out[i] = __builtin_sqrtf(args.x[i]);
      break;
    case Unary::kLog:
      for (std::int64_t i = begin; i < end; ++i) args.out[i] = __builtin_logf(args.x[i]);
      break;
  }
}

inline void unary_grad_range(const UnaryGradArgs<>& args, std::int64_t begin, std::int64_t end) {
  const auto each = [&](const auto& slope) {
    map_vectors(begin, end, args.x, args.y, args.grad, args.dx,
                [&](Vec x, Vec y, Vec grad) -> Vec { return grad * slope(x, y); });
  };
  switch (args.op) {
    case Unary::kScaleShift: each([&](Vec, Vec) { return broadcast(args.factor); }); break;
    case Unary::kExp: each([](Vec, Vec y) { return y; }); break;
    case Unary::kLog: each([](Vec x, Vec) -> Vec { return 1.0f / x; }); break;
    case Unary::kSqrt: each([](Vec, Vec y) -> Vec { return 0.5f / y; }); break;
    case Unary::kSquare: each([](Vec x, Vec) -> Vec { return 2.0f * x; }); break;
    case Unary::kTanh: each([](Vec, Vec y) -> Vec { return 1.0f - y * y; }); break;
    case Unary::kClamp:
      each([&](Vec x, Vec) -> Vec {
        const IntVec inside = (x >= -broadcast(args.factor)) & (x <= broadcast(args.factor));
        return (Vec)(inside & (IntVec)broadcast(1.0f));
      });
      break;
  }
}

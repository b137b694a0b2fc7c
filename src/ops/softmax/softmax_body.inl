// Kernels of softmax_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_rows.inl"

inline void softmax_rows(const SoftmaxArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.width;
    float* y = args.y + r * args.width;
    const float maximum = row_maximum(x, args.width);
    if (maximum == -__builtin_inff()) {
      for (std::int64_t c = 0; c < args.width; ++c) y[c] = args.logarithm ? x[c] : 0.0f;
      continue;
    }
    const float total = sum_of_exponentials(x, args.width, maximum);
    if (args.logarithm) {
      const float log_sum = maximum + __builtin_logf(total);
      for (std::int64_t c = 0; c < args.width; ++c) y[c] = x[c] - log_sum;
    } else {
      scaled_exponentials(x, args.width, maximum, 1.0f / total, y);
    }
  }
}

inline void softmax_grad_rows(const SoftmaxGradArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* y = args.y + r * args.width;
    const float* dy = args.dy + r * args.width;
    float* dx = args.dx + r * args.width;
    double total = 0.0;
    if (args.logarithm) {
      for (std::int64_t c = 0; c < args.width; ++c) total += static_cast<double>(dy[c]);
      const auto sum_dy = static_cast<float>(total);
      scaled_exponentials(y, args.width, 0.0f, -sum_dy, dx);
      for (std::int64_t c = 0; c < args.width; ++c) dx[c] += dy[c];
    } else {
      for (std::int64_t c = 0; c < args.width; ++c)
        total += static_cast<double>(y[c]) * static_cast<double>(dy[c]);
      const auto expected = static_cast<float>(total);
      for (std::int64_t c = 0; c < args.width; ++c) dx[c] = y[c] * (dy[c] - expected);
    }
  }
}

// Kernels of optimizer_cpu.cpp, compiled once per vector level.

inline void adamw_range(const AdamWArgs& args, std::int64_t begin, std::int64_t end) {
  const float* g = args.gradient;
  float* w = args.weight;
  float* m = args.first;
  float* v = args.second;
  for (std::int64_t i = begin; i < end; ++i) {
    const float gradient = g[i] * args.gradient_scale;
    const float first = args.beta1 * m[i] + (1.0f - args.beta1) * gradient;
    const float second = args.beta2 * v[i] + (1.0f - args.beta2) * gradient * gradient;
    m[i] = first;
    v[i] = second;
    w[i] = w[i] * args.decay -
           args.step_size * first / (__builtin_sqrtf(second) * args.second_scale + args.epsilon);
  }
}

inline double sum_of_squares_range(const float* x, std::int64_t count) {
  double partial[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      partial[lane] += static_cast<double>(x[i + lane]) * static_cast<double>(x[i + lane]);
  for (; i < count; ++i) partial[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double total = 0.0;
  for (int lane = 0; lane < kLanes; ++lane) total += partial[lane];
  return total;
}

// Kernels of layer_norm_cpu.cpp, compiled once per vector level.

// Sum of f(i) over [0, width), in kLanes partial sums.
template <typename Term>
[[gnu::always_inline]] inline float sum_terms(std::int64_t width, const Term& term) {
  float partial[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) partial[lane] += term(i + lane);
  for (; i < width; ++i) partial[0] += term(i);
  float total = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) total += partial[lane];
  return total;
}

inline void layer_norm_rows(const LayerNormArgs<>& args, std::int64_t begin, std::int64_t end) {
  const auto d = static_cast<float>(args.width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.width;
    float* y = args.y + r * args.width;
    const float mean = sum_terms(args.width, [&](std::int64_t i) { return x[i]; }) / d;
    const float variance =
        sum_terms(args.width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / d;
    const float inverse = 1.0f / __builtin_sqrtf(variance + args.epsilon);
    for (std::int64_t i = 0; i < args.width; ++i)
      y[i] = (x[i] - mean) * inverse * args.weight[i] + args.bias[i];
    args.mean[r] = mean;
    args.inverse[r] = inverse;
  }
}

// With n = (x - mean) * inverse and g = dy * weight:
//   dx = inverse * (g - mean(g) - n * mean(g n))
inline void layer_norm_grad_rows(const LayerNormGradArgs<>& args, std::int64_t begin,
                                 std::int64_t end) {
  const auto d = static_cast<float>(args.width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.width;
    const float* dy = args.dy + r * args.width;
    float* dx = args.dx + r * args.width;
    const float mean = args.mean[r], inverse = args.inverse[r];
    const float* weight = args.weight;
    const float mean_g =
        sum_terms(args.width, [&](std::int64_t i) { return dy[i] * weight[i]; }) / d;
    const float mean_gn =
        sum_terms(args.width,
                  [&](std::int64_t i) { return dy[i] * weight[i] * ((x[i] - mean) * inverse); }) /
        d;
    for (std::int64_t i = 0; i < args.width; ++i)
      dx[i] = inverse * (dy[i] * weight[i] - mean_g - (x[i] - mean) * inverse * mean_gn);
  }
}

inline void layer_norm_grad_columns(const LayerNormGradArgs<>& args, std::int64_t begin,
                                    std::int64_t end) {
  for (std::int64_t c0 = begin; c0 < end; c0 += 64) {
    const std::int64_t width = end - c0 < 64 ? end - c0 : 64;
    float dweight[64] = {}, dbias[64] = {};
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const float* x = args.x + r * args.width + c0;
      const float* dy = args.dy + r * args.width + c0;
      const float mean = args.mean[r], inverse = args.inverse[r];
      for (std::int64_t c = 0; c < width; ++c) {
        dweight[c] += dy[c] * ((x[c] - mean) * inverse);
        dbias[c] += dy[c];
      }
    }
    for (std::int64_t c = 0; c < width; ++c) {
      if (args.dweight != nullptr) args.dweight[c0 + c] += dweight[c];
      if (args.dbias != nullptr) args.dbias[c0 + c] += dbias[c];
    }
  }
}

// Kernels of norm_cpu.cpp, compiled once per vector level.

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

inline void norm_rows(const NormArgs<>& args, std::int64_t begin, std::int64_t end) {
  const auto d = static_cast<float>(args.width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.width;
    float* y = args.y + r * args.width;
    const bool centred = args.mean != nullptr;
    const float mean =
        centred ? sum_terms(args.width, [&](std::int64_t i) { return x[i]; }) / d : 0.0f;
    const float variance =
        sum_terms(args.width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / d;
    const float inverse = 1.0f / __builtin_sqrtf(variance + args.epsilon);
    if (args.bias != nullptr)
      for (std::int64_t i = 0; i < args.width; ++i)
        y[i] = (x[i] - mean) * inverse * args.weight[i] + args.bias[i];
    else
      for (std::int64_t i = 0; i < args.width; ++i) y[i] = (x[i] - mean) * inverse * args.weight[i];
    if (centred) args.mean[r] = mean;
    args.inverse[r] = inverse;
  }
}

// With n = (x - mean) * inverse and g = dy * weight:
//   dx = inverse * (g - mean(g) - n * mean(g n))
// in which nothing is centred without a mean.
inline void norm_grad_rows(const NormGradArgs<>& args, std::int64_t begin, std::int64_t end) {
  const auto d = static_cast<float>(args.width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.width;
    const float* dy = args.dy + r * args.width;
    float* dx = args.dx + r * args.width;
    const bool centred = args.mean != nullptr;
    const float mean = centred ? args.mean[r] : 0.0f, inverse = args.inverse[r];
    const float* weight = args.weight;
    const float mean_g =
        centred ? sum_terms(args.width, [&](std::int64_t i) { return dy[i] * weight[i]; }) / d
                : 0.0f;
    const float mean_gn =
        sum_terms(args.width,
                  [&](std::int64_t i) { return dy[i] * weight[i] * ((x[i] - mean) * inverse); }) /
        d;
    const auto slope = [&](std::int64_t i) {
      return inverse * (dy[i] * weight[i] - mean_g - (x[i] - mean) * inverse * mean_gn);
    };
    if (args.add_to_dx)
      for (std::int64_t i = 0; i < args.width; ++i) dx[i] += slope(i);
    else
      for (std::int64_t i = 0; i < args.width; ++i) dx[i] = slope(i);
  }
}

inline void norm_grad_columns(const NormGradArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t c0 = begin; c0 < end; c0 += 64) {
    const std::int64_t width = end - c0 < 64 ? end - c0 : 64;
    float dweight[64] = {}, dbias[64] = {};
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const float* x = args.x + r * args.width + c0;
      const float* dy = args.dy + r * args.width + c0;
      const float mean = args.mean != nullptr ? args.mean[r] : 0.0f, inverse = args.inverse[r];
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

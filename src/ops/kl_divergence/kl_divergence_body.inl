// Kernels of kl_divergence_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_rows.inl"

inline float log_sum_exp(const float* x, std::int64_t count) {
  const float maximum = row_maximum(x, count);
  return maximum + __builtin_logf(sum_of_exponentials(x, count, maximum));
}

inline void kl_rows(const KlArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    if (args.targets != nullptr && args.targets[r] == args.ignored) {
      args.divergence[r] = 0.0f;
      continue;
    }
    const float* t = args.teacher + r * args.width;
    const float* s = args.student + r * args.width;
    const float lt = log_sum_exp(t, args.width), ls = log_sum_exp(s, args.width);
    Vec total = {};
    for (std::int64_t c = 0; c < args.width; c += kLanes) {
      const bool whole = c + kLanes <= args.width;
      // Beyond the end the teacher's probability is 0 and the difference finite.
      const Vec log_t = (whole ? load(t + c) : load_edge(t + c, args.width - c, -1e30f)) - lt;
      const Vec log_s = (whole ? load(s + c) : load_edge(s + c, args.width - c, -1e30f)) - ls;
      total += exp(log_t) * (log_t - log_s);
    }
    args.divergence[r] = sum(total);
    args.teacher_log_sum_exp[r] = lt;
    args.student_log_sum_exp[r] = ls;
  }
}

inline void kl_grad_rows(const KlGradArgs<>& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* t = args.teacher + r * args.width;
    const float* s = args.student + r * args.width;
    float* d = args.dstudent + r * args.width;
    if (args.targets != nullptr && args.targets[r] == args.ignored) {
      __builtin_memset(d, 0, static_cast<std::size_t>(args.width) * sizeof(float));
      continue;
    }
    const float lt = args.teacher_log_sum_exp[r], ls = args.student_log_sum_exp[r];
    for (std::int64_t c = 0; c < args.width; c += kLanes) {
      const std::int64_t left = args.width - c;
      if (left >= kLanes)
        store(d + c, (exp(load(s + c) - ls) - exp(load(t + c) - lt)) * args.factor);
      else
        store_edge(
            d + c, left,
            (exp(load_edge(s + c, left, 0.0f) - ls) - exp(load_edge(t + c, left, 0.0f) - lt)) *
                args.factor);
    }
  }
}

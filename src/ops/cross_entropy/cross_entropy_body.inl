// Kernels of cross_entropy_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_rows.inl"

inline void cross_entropy_rows(const CrossEntropyArgs<>& args, std::int64_t begin,
                               std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* logits = args.logits + r * args.width;
    const float maximum = row_maximum(logits, args.width);
    const float total = sum_of_exponentials(logits, args.width, maximum);
    args.log_sum_exp[r] = maximum + __builtin_logf(total);
    args.losses[r] =
        args.targets[r] < 0 ? 0.0f : __builtin_logf(total) - (logits[args.targets[r]] - maximum);
  }
}

inline void cross_entropy_grad_rows(const CrossEntropyGradArgs<>& args, std::int64_t begin,
                                    std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    float* dlogits = args.dlogits + r * args.width;
    if (args.targets[r] < 0) {
      for (std::int64_t c = 0; c < args.width; ++c) dlogits[c] = 0.0f;
      continue;
    }
    scaled_exponentials(args.logits + r * args.width, args.width, args.log_sum_exp[r], args.factor,
                        dlogits);
    dlogits[args.targets[r]] -= args.factor;
  }
}

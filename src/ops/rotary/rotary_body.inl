// Kernel of rotary_cpu.cpp, compiled once per vector level.

inline void rotary_rows(const RotaryArgs<>& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t R = args.pairs;
  const float sign = args.back ? -1.0f : 1.0f;
  for (std::int64_t r = begin; r < end; ++r) {
    const float* cos = args.cos + r % args.positions * R;
    const float* sin = args.sin + r % args.positions * R;
    for (std::int64_t h = 0; h < args.heads; ++h) {
      const float* x = args.x + (r * args.heads + h) * args.width;
      float* y = args.y + (r * args.heads + h) * args.width;
      for (std::int64_t i = 0; i < R; ++i) {
        const float s = sign * sin[i];
        y[i] = x[i] * cos[i] - x[i + R] * s;
        y[i + R] = x[i + R] * cos[i] + x[i] * s;
      }
      for (std::int64_t i = 2 * R; i < args.width; ++i) y[i] = x[i];
    }
  }
}

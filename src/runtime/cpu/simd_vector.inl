// One vector of kLanes floats and the few functions kernels build on. Included by simd_targets.h
// into each level's namespace.

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * kLanes)));

[[gnu::always_inline]] inline Vec load(const float* from) {
  Vec value;
  __builtin_memcpy(&value, from, sizeof(Vec));
  return value;
}

[[gnu::always_inline]] inline void store(float* to, Vec value) {
  __builtin_memcpy(to, &value, sizeof(Vec));
}

[[gnu::always_inline]] inline Vec broadcast(float value) { return value - Vec{}; }

[[gnu::always_inline]] inline float sum(Vec value) {
  float total = 0.0f;
  for (int i = 0; i < kLanes; ++i) total += value[i];
  return total;
}

// e^x. Range reduction to |r| <= ln(2)/2 and a degree-6 polynomial: relative error below 2e-7 for x
// in
// [-87, 88]; below that 0, above that the largest finite power.
[[gnu::always_inline]] inline Vec exp(Vec x) {
  const Vec too_small = broadcast(-87.0f);
  const Vec too_large = broadcast(88.0f);
  const IntVec underflow = x < too_small;
  x = x < too_small ? too_small : x;
  x = x > too_large ? too_large : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low mantissa bits.
  const Vec shifted = x * 1.44269504088896341f + 12582912.0f;
  const Vec n = shifted - 12582912.0f;
  const Vec r = (x - n * 0.693145751953125f) - n * 1.42860682030941723212e-6f;
  Vec p = broadcast(1.0f / 720.0f);
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // A cast between vector types of one size keeps the bits.
  const IntVec scaled = (IntVec)p + ((IntVec)shifted << 23);
  return (Vec)(scaled & ~underflow);
}

// tanh x = 1 - 2 / (e^2x + 1); near 0 the odd Taylor series, where the difference would cancel.
[[gnu::always_inline]] inline Vec tanh(Vec x) {
  const Vec square = x * x;
  const Vec series =
      x * (1.0f + square * (-1.0f / 3.0f + square * (2.0f / 15.0f + square * (-17.0f / 315.0f))));
  const Vec e = exp(x * 2.0f);
  const Vec quotient = 1.0f - 2.0f / (e + 1.0f);
  const IntVec small = square < broadcast(0.04f);
  return small ? series : quotient;
}

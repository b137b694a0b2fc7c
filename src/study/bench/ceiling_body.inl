// The two loops whose speed is the machine's limit. Included by simd_targets.h into the namespace
// of each vector level.

// 2 * kLanes * kChains * `steps` floating-point operations that touch no memory. Enough chains to
// hide the latency of a multiply-add (4 cycles, two units) and few enough to stay in registers.
constexpr int kChains = 10;

inline float multiply_adds(std::int64_t steps) {
  Vec sums[kChains];
  // Not from 1, which x * factor + term leaves as it is: the compiler would see that and drop the
  // chain.
  for (int c = 0; c < kChains; ++c) sums[c] = broadcast(0.01f * static_cast<float>(c));
  // Below 1, so that the sums stay finite and normal.
  const Vec factor = broadcast(0.999f), term = broadcast(0.001f);
  for (std::int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 10
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  Vec total = sums[0];
  for (int c = 1; c < kChains; ++c) total = total + sums[c];
  return sum(total);
}

inline std::int64_t multiply_add_operations() { return 2 * kLanes * kChains; }

// The sum of `count` floats, a multiple of 4 * kLanes.
inline float read_all(const float* from, std::int64_t count) {
  Vec sums[4] = {};
  for (std::int64_t i = 0; i < count; i += 4 * kLanes)
    for (int c = 0; c < 4; ++c) sums[c] = sums[c] + load(from + i + c * kLanes);
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

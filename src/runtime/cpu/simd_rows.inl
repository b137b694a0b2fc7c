// Row reductions shared by softmax-like kernels. Included into a vector level's namespace.

inline float row_maximum(const float* x, std::int64_t count) {
  float best[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) best[lane] = x[0];
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      best[lane] = x[j + lane] > best[lane] ? x[j + lane] : best[lane];
  for (; j < count; ++j) best[0] = x[j] > best[0] ? x[j] : best[0];
  for (int lane = 1; lane < kLanes; ++lane) best[0] = best[lane] > best[0] ? best[lane] : best[0];
  return best[0];
}

// The last, partial vector of a row, padded with `fill`.
[[gnu::always_inline]] inline Vec load_edge(const float* from, std::int64_t count, float fill) {
  float edge[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) edge[lane] = lane < count ? from[lane] : fill;
  return load(edge);
}

[[gnu::always_inline]] inline void store_edge(float* to, std::int64_t count, Vec value) {
  float edge[kLanes];
  store(edge, value);
  __builtin_memcpy(to, edge, static_cast<std::size_t>(count) * sizeof(float));
}

// Sum of exp(x[j] - shift).
inline float sum_of_exponentials(const float* x, std::int64_t count, float shift) {
  Vec total = {};
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) total += exp(load(x + j) - shift);
  if (j < count) total += exp(load_edge(x + j, count - j, -1e30f) - shift);
  return sum(total);
}

// to[j] = exp(x[j] - shift) * factor; `to` may be x.
inline void scaled_exponentials(const float* x, std::int64_t count, float shift, float factor,
                                float* to) {
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) store(to + j, exp(load(x + j) - shift) * factor);
  if (j < count)
    store_edge(to + j, count - j, exp(load_edge(x + j, count - j, 0.0f) - shift) * factor);
}

// Loops over whole arrays. Included into a vector level's namespace by the bodies that need them.

// to[i] = f(from...) by whole vectors, the last one through a buffer.
template <typename Function>
[[gnu::always_inline]] inline void map_vectors(std::int64_t begin, std::int64_t end, const float* x,
                                               const float* y, const float* z, float* out,
                                               const Function& function) {
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes)
    store(out + i, function(load(x + i), load(y + i), load(z + i)));
  if (i < end) {
    float edge[3][kLanes] = {};
    const std::size_t bytes = static_cast<std::size_t>(end - i) * sizeof(float);
    __builtin_memcpy(edge[0], x + i, bytes);
    __builtin_memcpy(edge[1], y + i, bytes);
    __builtin_memcpy(edge[2], z + i, bytes);
    store(edge[0], function(load(edge[0]), load(edge[1]), load(edge[2])));
    __builtin_memcpy(out + i, edge[0], bytes);
  }
}

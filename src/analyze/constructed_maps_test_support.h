// Maps made to order, for the tests of roles and statistics.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "filigree/random.h"

namespace filigree::analyze_test {

struct ConstructedMap {
  std::int64_t length = 0;
  std::vector<float> weights;

  explicit ConstructedMap(std::int64_t T)
      : length(T), weights(static_cast<std::size_t>(T * T), 0.0f) {}
  float& at(std::int64_t i, std::int64_t j) {
    return weights[static_cast<std::size_t>(i * length + j)];
  }
};

// The keys that a pattern looks at from row i; none: the row is empty.
using KeysOf = std::function<std::vector<std::int64_t>(std::int64_t i)>;

inline KeysOf offset_keys(std::int64_t k) {
  return [k](std::int64_t i) {
    return i >= k ? std::vector<std::int64_t>{i - k} : std::vector<std::int64_t>{};
  };
}
inline KeysOf column_keys(std::vector<std::int64_t> columns) {
  return [columns = std::move(columns)](std::int64_t i) {
    std::vector<std::int64_t> keys;
    for (const std::int64_t j : columns)
      if (j <= i) keys.push_back(j);
    return keys;
  };
}
inline KeysOf every_key() {
  return [](std::int64_t i) {
    std::vector<std::int64_t> keys;
    for (std::int64_t j = 0; j <= i; ++j) keys.push_back(j);
    return keys;
  };
}
// Of each offset each cell with this probability.
inline KeysOf dotted_keys(std::vector<std::int64_t> offsets, double fill, std::uint64_t seed) {
  return [offsets = std::move(offsets), fill, seed](std::int64_t i) {
    std::vector<std::int64_t> keys;
    for (const std::int64_t k : offsets)
      if (i >= k && Random(seed, static_cast<std::uint64_t>(i * 1000 + k)).uniform_double() < fill)
        keys.push_back(i - k);
    return keys;
  };
}

// As softmax gives it: every row sums to 1, `strength` of it on the pattern (shared evenly by its
// keys), the rest on all keys by a softmax of normal scores. Rows without keys are all noise.
inline ConstructedMap dense_map(std::int64_t T, const KeysOf& keys_of, double strength = 0.85,
                                std::uint64_t seed = 1) {
  ConstructedMap map(T);
  Random random(seed, 77);
  for (std::int64_t i = 0; i < T; ++i) {
    std::vector<double> noise;
    double sum = 0.0;
    for (std::int64_t j = 0; j <= i; ++j) {
      noise.push_back(std::exp(2.0 * static_cast<double>(random.normal())));
      sum += noise.back();
    }
    const std::vector<std::int64_t> keys = keys_of(i);
    const double on_keys = keys.empty() ? 0.0 : strength;
    for (std::int64_t j = 0; j <= i; ++j)
      map.at(i, j) = static_cast<float>((1.0 - on_keys) * noise[static_cast<std::size_t>(j)] / sum);
    for (const std::int64_t j : keys)
      map.at(i, j) += static_cast<float>(on_keys / static_cast<double>(keys.size()));
  }
  return map;
}

// As gates leave it: the pattern's cells with weights from 0.2 to 1 in all, exact zeros elsewhere,
// and this share of the rows empty.
inline ConstructedMap sparse_map(std::int64_t T, const KeysOf& keys_of, double empty = 0.4,
                                 std::uint64_t seed = 1) {
  ConstructedMap map(T);
  Random random(seed, 78);
  for (std::int64_t i = 0; i < T; ++i) {
    const bool closed = random.uniform_double() < empty;
    const double mass = 0.2 + 0.8 * random.uniform_double();
    const std::vector<std::int64_t> keys = keys_of(i);
    if (closed) continue;
    for (const std::int64_t j : keys)
      map.at(i, j) = static_cast<float>(mass / static_cast<double>(keys.size()));
  }
  return map;
}

// Cell by cell share * a + (1 - share) * b.
inline ConstructedMap mixture(const ConstructedMap& a, const ConstructedMap& b, float share) {
  ConstructedMap map(a.length);
  for (std::size_t c = 0; c < map.weights.size(); ++c)
    map.weights[c] = share * a.weights[c] + (1.0f - share) * b.weights[c];
  return map;
}

}  // namespace filigree::analyze_test

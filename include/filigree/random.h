// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", 2011).
//
// A block of four words is a pure function of (seed, stream, index), so that any thread or kernel
// can compute any element on its own and the result depends on nothing else. The seed is the key;
// the 128-bit counter holds the stream in its upper and the index in its lower half. Two purposes
// (dropout of layer 3, shuffling of epoch 7) take two streams of one seed.
//
// The functions are inline and this header is light, so that CUDA kernels include it too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#if defined(__CUDACC__)
#define FILIGREE_HOST_DEVICE __host__ __device__
#else
#define FILIGREE_HOST_DEVICE
#endif

namespace filigree {

struct PhiloxBlock {
  std::uint32_t words[4];
};

// One block of Philox4x32-10. Each of the ten rounds multiplies two words of the counter, takes the
// high halves, xors them with the other two words and the round key, and swaps:
//   (c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))
FILIGREE_HOST_DEVICE constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0,
                                                      std::uint32_t key1) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kKeyStep0 = 0x9E3779B9u;  // the golden ratio
  constexpr std::uint32_t kKeyStep1 = 0xBB67AE85u;  // the square root of 3, less 1
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.words[0];
    const std::uint64_t product1 = kMultiplier1 * counter.words[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.words[1] ^ key0,
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.words[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kKeyStep0;
    key1 += kKeyStep1;
  }
  return counter;
}

FILIGREE_HOST_DEVICE constexpr PhiloxBlock random_block(std::uint64_t seed, std::uint64_t stream,
                                                        std::uint64_t index) {
  return philox4x32(
      {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}},
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// Uniform in [0, 1): 24 bits, as many as a float holds, so that 1 never comes out.
FILIGREE_HOST_DEVICE constexpr float uniform_from(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// Uniform in (0, 1): the midpoints of 2^23 intervals, each exact in a float.
FILIGREE_HOST_DEVICE constexpr float open_uniform_from(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

struct NormalPair {
  float first, second;
};

// Two independent standard normals (Box-Muller): sqrt(-2 ln u) (cos 2 pi v, sin 2 pi v). u has 32
// bits of resolution near 0, so that the tails reach 6.7 standard deviations.
FILIGREE_HOST_DEVICE inline NormalPair normals_from(std::uint32_t word_u, std::uint32_t word_v) {
  const float u = (static_cast<float>(word_u) + 0.5f) * 0x1p-32f;  // in (0, 1]
  const float angle = uniform_from(word_v) * 6.28318530717958648f;
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Fill `out` with elements first, first + 1, ... of the stream's endless sequence of uniforms in
// [0, 1) or of standard normals. Any split into ranges gives the same values.
void fill_uniform(std::span<float> out, std::uint64_t seed, std::uint64_t stream,
                  std::uint64_t first = 0);
void fill_normal(std::span<float> out, std::uint64_t seed, std::uint64_t stream,
                 std::uint64_t first = 0);

// One number after the other, for sequential code. Its whole state is (seed, stream, position):
// save the position and seek() to it to resume.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t next_uint32();
  std::uint64_t next_uint64();

  float uniform() { return uniform_from(next_uint32()); }  // in [0, 1)
  double uniform_double();                                 // in [0, 1), 53 bits
  float normal();                                          // mean 0, variance 1

  // Uniform in {0, ..., n - 1}, without bias. Throws Error when n is 0.
  std::uint64_t below(std::uint64_t n);

  // Words taken so far.
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
  PhiloxBlock block_ = {};  // the block that holds word `position_`, unless that is its first word
};

}  // namespace filigree

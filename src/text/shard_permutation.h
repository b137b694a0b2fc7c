// A shuffled order of 0 .. n-1 without an array of n numbers: a Feistel network over the smallest
// even number of bits that holds n - 1, with Philox as its round function, walked until the value
// falls below n again (each walk stays on one cycle of the network, so the result is a permutation;
// it takes fewer than four steps on average).
#pragma once

#include <cstdint>

namespace filigree {

class IndexPermutation {
 public:
  // Of the numbers below `size`; another order for every (seed, stream). Throws Error when the size
  // is 0.
  IndexPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);

  std::uint64_t size() const { return size_; }

  // The number at place `index`, which must be below size().
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t scramble(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  int half_bits_;
};

}  // namespace filigree

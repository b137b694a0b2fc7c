#include "text/shard_permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "filigree/error.h"
#include "filigree/random.h"

namespace filigree {
namespace {

// Four rounds make a Feistel network with a strong round function look random; two more are cheap.
constexpr std::uint64_t kRounds = 6;

}  // namespace

IndexPermutation::IndexPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(size), seed_(seed), stream_(stream) {
  require(size > 0, "permutation: there is nothing to put in order");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
}

std::uint64_t IndexPermutation::scramble(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    // A half has at most 32 bits, so the round fits above it.
    const PhiloxBlock block = random_block(seed_, stream_, (round << 32) | right);
    left ^= block.words[0] & mask;
    std::swap(left, right);
  }
  return (left << half_bits_) | right;
}

std::uint64_t IndexPermutation::operator()(std::uint64_t index) const {
  if (index >= size_) fail("permutation: place {} is beyond its {} numbers", index, size_);
  do index = scramble(index);
  while (index >= size_);
  return index;
}

}  // namespace filigree

// The noise of sampled gates.
//
// Every edge (step, layer, batch, head, query, key) has one uniform number that is a pure function
// of its place and the seed, so that forward and backward, any tiling, any thread count and any
// device see the same gates. Key j of a row takes word (j % 64) / 16 of the Philox block
//
//   counter = ((j / 64) * 16 + j % 16, query, batch * H + head, layer)
//
// so that 16 lanes, or a tensor-core fragment whose columns are 16 apart, use whole blocks.
#pragma once

#include <cstdint>

#include "filigree/random.h"

namespace filigree {

struct GateNoise {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t first_batch = 0;  // of this process's part of the batch
};

// Seed and step in one 64-bit Philox key (splitmix64's finaliser, so that near seeds and steps give
// unrelated keys).
FILIGREE_HOST_DEVICE constexpr std::uint64_t gate_noise_key(const GateNoise& noise) {
  std::uint64_t x = noise.seed + 0x9E3779B97F4A7C15u * (noise.step + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The uniform number in (0, 1) of one edge; `row` is batch * H + head.
FILIGREE_HOST_DEVICE constexpr float gate_uniform(std::uint64_t key, std::uint32_t layer,
                                                  std::uint32_t row, std::uint32_t query,
                                                  std::uint32_t j) {
  const PhiloxBlock block =
      philox4x32({{j / 64 * 16 + j % 16, query, row, layer}}, static_cast<std::uint32_t>(key),
                 static_cast<std::uint32_t>(key >> 32));
  return open_uniform_from(block.words[j % 64 / 16]);
}

}  // namespace filigree

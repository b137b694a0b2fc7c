#include "filigree/random.h"

#include <algorithm>

#include "filigree/error.h"

namespace filigree {
namespace {

// Calls make(block, values) for every block of four elements that [first, first + size) touches and
// copies the part that lies inside.
template <typename Make>
void fill_by_blocks(std::span<float> out, std::uint64_t seed, std::uint64_t stream,
                    std::uint64_t first, Make make) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t element = first + done;
    float values[4];
    make(random_block(seed, stream, element / 4), values);
    const std::size_t offset = element % 4;
    const std::size_t count = std::min<std::size_t>(4 - offset, out.size() - done);
    std::copy_n(values + offset, count, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace

void fill_uniform(std::span<float> out, std::uint64_t seed, std::uint64_t stream,
                  std::uint64_t first) {
  fill_by_blocks(out, seed, stream, first, [](const PhiloxBlock& block, float* values) {
    for (int i = 0; i < 4; ++i) values[i] = uniform_from(block.words[i]);
  });
}

void fill_normal(std::span<float> out, std::uint64_t seed, std::uint64_t stream,
                 std::uint64_t first) {
  fill_by_blocks(out, seed, stream, first, [](const PhiloxBlock& block, float* values) {
    for (int i = 0; i < 4; i += 2) {
      const NormalPair pair = normals_from(block.words[i], block.words[i + 1]);
      values[i] = pair.first;
      values[i + 1] = pair.second;
    }
  });
}

std::uint32_t Random::next_uint32() {
  const std::uint64_t lane = position_ % 4;
  if (lane == 0) block_ = random_block(seed_, stream_, position_ / 4);
  ++position_;
  return block_.words[lane];
}

std::uint64_t Random::next_uint64() {
  const std::uint64_t low = next_uint32();
  return low | (static_cast<std::uint64_t>(next_uint32()) << 32);
}

double Random::uniform_double() { return static_cast<double>(next_uint64() >> 11) * 0x1p-53; }

float Random::normal() {
  // The second normal of the pair is dropped: keeping it would be state beyond the position.
  const std::uint32_t word_u = next_uint32();
  const std::uint32_t word_v = next_uint32();
  return normals_from(word_u, word_v).first;
}

std::uint64_t Random::below(std::uint64_t n) {
  require(n > 0, "random: below(0) has no number to choose from");
  // The lowest 2^64 mod n values are refused, so that the remaining ones split evenly over n.
  const std::uint64_t refused = (0 - n) % n;
  std::uint64_t word = next_uint64();
  while (word < refused) word = next_uint64();
  return word % n;
}

void Random::seek(std::uint64_t position) {
  position_ = position;
  if (position % 4 != 0) block_ = random_block(seed_, stream_, position / 4);
}

}  // namespace filigree

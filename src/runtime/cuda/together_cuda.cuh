// Many arrays in one launch, as a kernel's argument: blocks first[a] to first[a + 1] work on array
// a. A model has hundreds of small arrays, whose launches would take longer than their work.
#pragma once

#include <cstddef>
#include <cstdint>

namespace filigree::cuda {

// An argument has 4096 bytes.
inline constexpr std::size_t kMostArgumentBytes = 4000;

template <typename Array, int kMost>
struct Together {
  static constexpr int kRoom = kMost;
  Array arrays[kMost];
  std::int32_t first[kMost + 1] = {};
  int count = 0;

  void add(const Array& array, std::int64_t blocks) {
    arrays[count] = array;
    first[count + 1] = first[count] + static_cast<std::int32_t>(blocks);
    ++count;
  }
  __device__ int array_of(std::int32_t block) const {
    int array = 0;
    while (first[array + 1] <= block) ++array;
    return array;
  }
};

// Calls launch(batch, blocks) for the arrays that have blocks, many at a time.
template <typename Batch, typename Array, typename BlocksOf, typename Launch>
void in_batches(const Array* arrays, std::int64_t count, const BlocksOf& blocks_of,
                const Launch& launch) {
  static_assert(sizeof(Batch) <= kMostArgumentBytes);
  Batch batch;
  for (std::int64_t a = 0; a < count; ++a) {
    if (const std::int64_t blocks = blocks_of(arrays[a]); blocks > 0) batch.add(arrays[a], blocks);
    if (batch.count == 0 || (a + 1 < count && batch.count < Batch::kRoom)) continue;
    launch(batch, static_cast<unsigned>(batch.first[batch.count]));
    batch.count = 0;
  }
}

}  // namespace filigree::cuda

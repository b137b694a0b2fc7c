// Copies of parts of tensors, on the device where they lie.
#pragma once

#include "filigree/tensor.h"

namespace filigree {

// A place within a tensor: elements from the beginning, and from one block to the next.
struct BlockPlace {
  std::int64_t offset = 0, step = 0;
};

// Copies `count` blocks of `block` elements. Both tensors have one element type and device, and the
// blocks lie within them.
void copy_blocks(std::int64_t count, std::int64_t block, const Tensor& from, BlockPlace from_place,
                 Tensor& to, BlockPlace to_place);

}  // namespace filigree

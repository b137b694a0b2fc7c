// Copies of blocks of bytes: what moves elements need not know their type.
#pragma once

#include <cstddef>
#include <cstdint>

namespace filigree {

// `count` blocks of `block` bytes between two places with their own steps; a step of 0 in `from`
// repeats one block.
struct CopyBlocksArgs {
  std::int64_t count = 0, block = 0;
  const std::byte* from = nullptr;
  std::int64_t from_step = 0;
  std::byte* to = nullptr;
  std::int64_t to_step = 0;
};

// [outer, A, middle, B, inner] -> [outer, B, middle, A, inner]; inner in bytes.
struct TransposeArgs {
  std::int64_t outer = 0, A = 0, middle = 0, B = 0, inner = 0;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
};

namespace cpu {
void copy_blocks(const CopyBlocksArgs& args);
void transpose(const TransposeArgs& args);
}  // namespace cpu

namespace cuda {
void copy_blocks(const CopyBlocksArgs& args);
void transpose(const TransposeArgs& args);
}  // namespace cuda
}  // namespace filigree

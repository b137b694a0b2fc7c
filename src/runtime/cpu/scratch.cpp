#include "runtime/cpu/scratch.h"

#include <cstdlib>
#include <memory>

#include "filigree/error.h"

namespace filigree {
namespace {

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

struct Block {
  std::unique_ptr<float, Free> memory;
  std::size_t floats = 0;
};

constexpr std::size_t kPageFloats = 4096 / sizeof(float);

}  // namespace

float* scratch_floats(ScratchSlot slot, std::size_t floats) {
  thread_local Block blocks[2];
  Block& block = blocks[static_cast<int>(slot)];
  if (block.floats < floats) {
    const std::size_t rounded = (floats + kPageFloats - 1) / kPageFloats * kPageFloats;
    block.memory.reset();
    block.floats = 0;
    block.memory.reset(static_cast<float*>(std::aligned_alloc(4096, rounded * sizeof(float))));
    require(block.memory != nullptr, "out of memory: a kernel needs {} bytes of working memory",
            rounded * sizeof(float));
    block.floats = rounded;
  }
  return block.memory.get();
}

}  // namespace filigree

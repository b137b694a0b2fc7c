// What every kernel launch needs. Light enough for nvcc; failures become Errors in launch_cuda.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace filigree::cuda {

// The one stream that all work of the process goes through, on the first GPU that
// CUDA_VISIBLE_DEVICES leaves or the one that use_gpu() chose. Non-blocking: it does not wait for
// the legacy stream, which nothing here uses.
//
// Several threads may give it work: it is done in the order in which it was given, and memory goes
// back to the pool only after the work that uses it was. Each operation must therefore keep what
// its launches share in memory of its own (Workspace), or give it under a lock.
cudaStream_t stream();

// After each launch: throws Error naming the kernel when it could not be started, or when work
// before it has failed.
void check_launch(const char* kernel);

// Waits until all work is done; throws Error when some of it failed.
void synchronize();

int multiprocessors();

// Temporary memory for a kernel's partial results, in the order of the stream: given back when it
// goes out of scope, though the kernels have not run yet.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* buffer_;  // a std::shared_ptr<Buffer>, whose header nvcc need not see
  void* data_ = nullptr;
};

// Blocks for `count` items at `per_block` a block, at least 1 and at most `most`: kernels stride
// over the rest.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block,
                           std::int64_t most = std::int64_t{1} << 20) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 1 ? 1 : (blocks > most ? most : blocks));
}

}  // namespace filigree::cuda

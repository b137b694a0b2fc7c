#include "runtime/cuda/launch_cuda.h"

#include <memory>

#include "filigree/device.h"
#include "filigree/runtime.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/devices_cuda.h"

namespace filigree::cuda {
namespace {

// Device and stream. Never destroyed: tensors in static storage may outlive any static object, and
// the driver ends with the process.
struct Compute {
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;

  Compute() {
    require_device(DeviceKind::kCuda);
    check(cudaSetDevice(device_in_use()), "use the GPU");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device_in_use()),
          "ask for the number of multiprocessors");
  }

  static const Compute& instance() {
    static const Compute* compute = new Compute;
    return *compute;
  }
};

}  // namespace

cudaStream_t stream() {
  const Compute& compute = Compute::instance();
  // Each thread has a current device of its own, at first the first one.
  thread_local bool chosen = false;
  if (!chosen) {
    check(cudaSetDevice(device_in_use()), "use the GPU");
    chosen = true;
  }
  return compute.stream;
}
int multiprocessors() { return Compute::instance().multiprocessors; }

void check_launch(const char* kernel) {
  const cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess) [[likely]]
    return;
  fail("cuda: the kernel {} failed to start: {} ({})", kernel, cudaGetErrorString(code),
       cudaGetErrorName(code));
}

void synchronize() { check(cudaStreamSynchronize(stream()), "finish the work on the GPU"); }

Workspace::Workspace(std::size_t bytes)
    : buffer_(new std::shared_ptr<Buffer>(Buffer::allocate(bytes, DeviceKind::kCuda))) {
  data_ = (*static_cast<std::shared_ptr<Buffer>*>(buffer_))->mutable_data();
}

Workspace::~Workspace() { delete static_cast<std::shared_ptr<Buffer>*>(buffer_); }

}  // namespace filigree::cuda

#include "dist/nccl/nccl_communicator.h"

#include <nccl.h>

#include <utility>

#include "base/error.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::nccl {
namespace {

void check(ncclResult_t code, const char* what, ncclComm_t comm = nullptr) {
  if (code == ncclSuccess) [[likely]]
    return;
  const char* detail = ncclGetLastError(comm);
  fail(
      "nccl: cannot {}: {}{}{}; every rank needs a GPU of its own (at most as many ranks a machine "
      "as it has), and NCCL_DEBUG=INFO tells more",
      what, ncclGetErrorString(code), detail != nullptr && *detail != '\0' ? ": " : "",
      detail != nullptr ? detail : "");
}

// A point in a stream's work.
class Event {
 public:
  Event() {
    cuda::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) {
    cuda::check(cudaEventRecord(event_, stream), "record an event");
  }
  void hold_back(cudaStream_t stream) const {
    cuda::check(cudaStreamWaitEvent(stream, event_, 0), "wait for an event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// The ranks' GPUs, and the stream on which they sum while the compute stream goes on.
class Ring {
 public:
  explicit Ring(Communicator& host) {
    ncclUniqueId id = {};
    if (host.first()) check(ncclGetUniqueId(&id), "start");
    host.broadcast(std::as_writable_bytes(std::span(&id, 1)));
    cuda::stream();  // makes this rank's GPU the current one
    check(ncclCommInitRank(&comm_, host.size(), id, host.rank()), "connect the ranks");
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~Ring() {
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    ncclCommDestroy(comm_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Sums in place after the work that is on the compute stream now.
  void sum(const std::vector<std::span<float>>& arrays, Event& done) {
    Event ready;
    ready.record(cuda::stream());
    ready.hold_back(stream_);
    check(ncclGroupStart(), "sum over the ranks", comm_);
    for (const std::span<float> array : arrays)
      check(ncclAllReduce(array.data(), array.data(), array.size(), ncclFloat32, ncclSum, comm_,
                          stream_),
            "sum over the ranks", comm_);
    check(ncclGroupEnd(), "sum over the ranks", comm_);
    done.record(stream_);
  }

  // Throws Error when a sum has failed, for example because another rank has gone.
  void check_health() {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ask for errors", comm_);
    if (state != ncclInProgress) check(state, "sum over the ranks", comm_);
  }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

class NcclSum : public PendingSum {
 public:
  NcclSum(Ring& ring, const std::vector<std::span<float>>& arrays) : ring_(ring) {
    ring_.sum(arrays, done_);
  }
  void wait() override {
    ring_.check_health();
    done_.hold_back(cuda::stream());
  }

 private:
  Ring& ring_;
  Event done_;
};

class NcclCommunicator : public Communicator {
 public:
  explicit NcclCommunicator(std::unique_ptr<Communicator> host)
      : Communicator({host->rank(), host->size(), host->local_rank(), host->local_size(),
                      host->cores(), host->has_own_cores()}),
        host_(std::move(host)) {}

  using Communicator::broadcast;
  void sum(std::span<double> values) override { host_->sum(values); }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>> arrays,
                                        DeviceKind device) override {
    if (device == DeviceKind::kCpu) return host_->start_sum(std::move(arrays), device);
    if (ring_ == nullptr) ring_ = std::make_unique<Ring>(*host_);
    return std::make_unique<NcclSum>(*ring_, arrays);
  }
  void broadcast(std::span<std::byte> bytes) override { host_->broadcast(bytes); }
  bool all_failed(std::chrono::milliseconds patience) override {
    return host_->all_failed(patience);
  }
  void abort(int exit_code) override { host_->abort(exit_code); }

 private:
  std::unique_ptr<Communicator> host_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host) {
  return std::make_unique<NcclCommunicator>(std::move(host));
}

}  // namespace filigree::nccl

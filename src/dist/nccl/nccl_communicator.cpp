#include "dist/nccl/nccl_communicator.h"

#include <nccl.h>

#include <thread>
#include <utility>

#include "filigree/error.h"
#include "filigree/runtime.h"
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
  bool reached() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) {
      cudaGetLastError();  // which would otherwise be taken for a failure later
      return false;
    }
    cuda::check(code, "ask for an event");
    return true;
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
    // NCCL allocates past the pool, and this is in the middle of the first backward pass.
    trim_pool(DeviceKind::kCuda);
    check(ncclCommInitRank(&comm_, host.size(), id, host.rank()), "connect the ranks");
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~Ring() {
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    if (comm_ != nullptr) ncclCommDestroy(comm_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Sums in place after the work that is on the compute stream now.
  void sum(const std::vector<std::span<float>>& arrays, Event& done) {
    require(comm_ != nullptr, "nccl: the ranks were disconnected by an earlier failure");
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

  // Broadcasts from each rank in place, after the work that is on the compute stream now.
  void all_gather(const std::vector<std::vector<std::span<float>>>& of_ranks, Event& done) {
    require(comm_ != nullptr, "nccl: the ranks were disconnected by an earlier failure");
    Event ready;
    ready.record(cuda::stream());
    ready.hold_back(stream_);
    check(ncclGroupStart(), "gather from the ranks", comm_);
    for (std::size_t root = 0; root < of_ranks.size(); ++root)
      for (const std::span<float> array : of_ranks[root])
        check(ncclBroadcast(array.data(), array.data(), array.size(), ncclFloat32,
                            static_cast<int>(root), comm_, stream_),
              "gather from the ranks", comm_);
    check(ncclGroupEnd(), "gather from the ranks", comm_);
    done.record(stream_);
  }

  // Ends the sums under way, which may wait for a rank that will never come, so that their memory
  // is free. No other sum can follow.
  void abandon() {
    if (comm_ == nullptr) return;
    ncclCommAbort(comm_);
    comm_ = nullptr;
    cudaStreamSynchronize(stream_);
  }

  // Throws Error when a sum has failed, for example because another rank has gone.
  void check_health() {
    require(comm_ != nullptr, "nccl: the ranks were disconnected by an earlier failure");
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ask for errors", comm_);
    if (state != ncclInProgress) check(state, "sum over the ranks", comm_);
  }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// Something that the ranks do together, under way.
class NcclWork : public PendingSum {
 public:
  // `start` puts it on the ring's stream and records the event after it.
  template <typename Start>
  NcclWork(Ring& ring, const Start& start) : ring_(ring) {
    start(done_);
  }
  // Left by an exception: the other ranks may have failed too and never come.
  ~NcclWork() override {
    if (!ended_) ring_.abandon();
  }
  // A stream that waits for a lost rank waits for ever and reports nothing: NCCL has to be asked.
  void wait() override {
    while (!done_.reached()) {
      ring_.check_health();
      std::this_thread::yield();
    }
    done_.hold_back(cuda::stream());
    ended_ = true;
  }

 private:
  Ring& ring_;
  Event done_;
  bool ended_ = false;
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
    return std::make_unique<NcclWork>(ring(), [&](Event& done) { ring().sum(arrays, done); });
  }
  void all_gather(const std::vector<std::vector<std::span<float>>>& of_ranks,
                  DeviceKind device) override {
    if (device == DeviceKind::kCpu) {
      host_->all_gather(of_ranks, device);
      return;
    }
    NcclWork(ring(), [&](Event& done) { ring().all_gather(of_ranks, done); }).wait();
  }
  void broadcast(std::span<std::byte> bytes) override { host_->broadcast(bytes); }
  bool all_failed(std::chrono::milliseconds patience) override {
    return host_->all_failed(patience);
  }
  void abort(int exit_code) override { host_->abort(exit_code); }

 private:
  Ring& ring() {
    if (ring_ == nullptr) ring_ = std::make_unique<Ring>(*host_);
    return *ring_;
  }

  std::unique_ptr<Communicator> host_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host) {
  return std::make_unique<NcclCommunicator>(std::move(host));
}

}  // namespace filigree::nccl

#include "dist/mpi/mpi_communicator.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

#include "filigree/error.h"

namespace filigree::mpi {
namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("mpi: cannot {}: {}", what, text);
}

// MPI counts in int: larger spans go in pieces.
template <typename T, typename Body>
void in_pieces(std::span<T> values, const Body& body) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  static_assert(kMost <= INT_MAX);
  for (std::size_t begin = 0; begin < values.size(); begin += kMost) {
    const std::size_t count = std::min(kMost, values.size() - begin);
    body(values.data() + begin, static_cast<int>(count));
  }
}

// Sums in place, or of several arrays in one message: short messages cost as much as long ones.
class MpiSum : public PendingSum {
 public:
  explicit MpiSum(std::vector<std::span<float>> arrays) : arrays_(std::move(arrays)) {
    if (arrays_.size() == 1) {
      start(arrays_[0]);
      return;
    }
    std::size_t count = 0;
    for (const std::span<float> array : arrays_) count += array.size();
    packed_.reserve(count);
    for (const std::span<float> array : arrays_)
      packed_.insert(packed_.end(), array.begin(), array.end());
    start(packed_);
  }
  ~MpiSum() override {
    // Left early by an exception: the memory must not be written any more once this returns.
    if (!requests_.empty())
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  MpiSum(const MpiSum&) = delete;
  MpiSum& operator=(const MpiSum&) = delete;

  // Libraries without a thread of their own send only while a call of theirs runs.
  void advance() override {
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                      MPI_STATUSES_IGNORE),
          "sum over the ranks");
  }

  void wait() override {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "sum over the ranks");
    requests_.clear();
    auto from = packed_.cbegin();
    for (std::size_t i = 0; !packed_.empty() && i < arrays_.size(); ++i) {
      const auto end = from + static_cast<std::ptrdiff_t>(arrays_[i].size());
      std::copy(from, end, arrays_[i].begin());
      from = end;
    }
  }

 private:
  void start(std::span<float> values) {
    in_pieces(values, [&](float* data, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request),
            "sum over the ranks");
      requests_.push_back(request);
    });
  }

  std::vector<std::span<float>> arrays_;
  std::vector<float> packed_;
  std::vector<MPI_Request> requests_;
};

void require_on_cpu(DeviceKind device) {
  require(device == DeviceKind::kCpu,
          "mpi: sums of values on GPUs need NCCL, which this build does not have; put nccl.h and "
          "libnccl beside the CUDA toolkit and build again, or train on the CPU");
}

// Whether the ranks of a machine may all use the same cores.
bool same_cores(MPI_Comm machine) {
  cpu_set_t own, first;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof(own), &own) != 0) CPU_ZERO(&own);
  first = own;
  check(MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, machine), "compare the ranks' cores");
  int same = CPU_EQUAL(&own, &first) ? 1 : 0;
  check(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_LAND, machine),
        "compare the ranks' cores");
  return same != 0;
}

class MpiCommunicator : public Communicator {
 public:
  // MPI has been started.
  static std::unique_ptr<Communicator> make() {
    RankPlacement place;
    check(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank), "read the rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &place.size), "read the number of ranks");
    MPI_Comm machine = MPI_COMM_NULL, failures = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
          "find the ranks of this machine");
    check(MPI_Comm_rank(machine, &place.local_rank), "read the rank");
    check(MPI_Comm_size(machine, &place.local_size), "read the number of ranks");
    place.own_cores = !same_cores(machine);
    place.cores = available_cores();
    if (!place.own_cores) place.cores = std::max(1, place.cores / place.local_size);
    check(MPI_Comm_free(&machine), "free a group of ranks");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &failures), "make a group of ranks");
    return std::unique_ptr<Communicator>(new MpiCommunicator(place, failures));
  }
  ~MpiCommunicator() override { MPI_Finalize(); }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  using Communicator::broadcast;

  void sum(std::span<double> values) override {
    in_pieces(values, [](double* data, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
            "sum over the ranks");
    });
  }

  std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>> arrays,
                                        DeviceKind device) override {
    require_on_cpu(device);
    return std::make_unique<MpiSum>(std::move(arrays));
  }

  void all_gather(const std::vector<std::vector<std::span<float>>>& of_ranks,
                  DeviceKind device) override {
    require_on_cpu(device);
    // All at once, so that many short ones do not wait for each other.
    std::vector<MPI_Request> requests;
    for (std::size_t root = 0; root < of_ranks.size(); ++root)
      for (const std::span<float> array : of_ranks[root])
        in_pieces(array, [&](float* data, int count) {
          check(MPI_Ibcast(data, count, MPI_FLOAT, static_cast<int>(root), MPI_COMM_WORLD,
                           &requests.emplace_back(MPI_REQUEST_NULL)),
                "gather from the ranks");
        });
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
          "gather from the ranks");
  }

  void broadcast(std::span<std::byte> bytes) override {
    in_pieces(bytes, [](std::byte* data, int count) {
      check(MPI_Bcast(data, count, MPI_BYTE, 0, MPI_COMM_WORLD), "send to the ranks");
    });
  }

  bool all_failed(std::chrono::milliseconds patience) override {
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(failures_, &request) != MPI_SUCCESS) return false;
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      int all = 0;
      if (MPI_Test(&request, &all, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (all != 0) return true;
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  MpiCommunicator(const RankPlacement& place, MPI_Comm failures)
      : Communicator(place), failures_(failures) {}

  MPI_Comm failures_;  // where nobody but failed ranks speaks
};

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  int provided = 0;
  // Only the thread that made the communicator speaks to the others.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
  require(provided >= MPI_THREAD_FUNNELED, "mpi: this MPI library does not allow threads");
  // Errors come back as codes instead of ending the process.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return MpiCommunicator::make();
}

}  // namespace filigree::mpi

#include "dist/mpi/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "base/error.h"

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

class MpiSum : public PendingSum {
 public:
  explicit MpiSum(std::vector<MPI_Request> requests) : requests_(std::move(requests)) {}
  ~MpiSum() override {
    // Left early by an exception: the memory must not be written any more once this returns.
    if (!requests_.empty())
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  MpiSum(const MpiSum&) = delete;
  MpiSum& operator=(const MpiSum&) = delete;

  void wait() override {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "sum over the ranks");
    requests_.clear();
  }

 private:
  std::vector<MPI_Request> requests_;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(int rank, int size) : Communicator(rank, size) {}
  ~MpiCommunicator() override { MPI_Finalize(); }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  void sum(std::span<double> values) override {
    in_pieces(values, [](double* data, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
            "sum over the ranks");
    });
  }

  std::unique_ptr<PendingSum> start_sum(std::span<float> values) override {
    std::vector<MPI_Request> requests;
    in_pieces(values, [&](float* data, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request),
            "sum over the ranks");
      requests.push_back(request);
    });
    return std::make_unique<MpiSum>(std::move(requests));
  }

  void broadcast(std::span<std::byte> bytes) override {
    in_pieces(bytes, [](std::byte* data, int count) {
      check(MPI_Bcast(data, count, MPI_BYTE, 0, MPI_COMM_WORLD), "send to the ranks");
    });
  }

  std::vector<std::string> gather(const std::string& text) override {
    require(text.size() <= INT_MAX, "mpi: a text of {} bytes is too long to send", text.size());
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(first() ? static_cast<std::size_t>(size()) : 0);
    check(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD),
          "collect from the ranks");
    // One message a rank: together they may be longer than an int counts.
    if (!first()) {
      check(MPI_Send(text.data(), length, MPI_CHAR, 0, 0, MPI_COMM_WORLD), "send to rank 0");
      return {};
    }
    std::vector<std::string> all = {text};
    for (int from = 1; from < size(); ++from) {
      std::string& received = all.emplace_back();
      received.resize(static_cast<std::size_t>(lengths[static_cast<std::size_t>(from)]));
      check(MPI_Recv(received.data(), static_cast<int>(received.size()), MPI_CHAR, from, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "receive from a rank");
    }
    return all;
  }

  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "wait for the ranks"); }
};

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  int provided = 0;
  // Only the thread that made the communicator speaks to the others.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
  require(provided >= MPI_THREAD_FUNNELED, "mpi: this MPI library does not allow threads");
  // Errors come back as codes instead of ending the process.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "read the rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "read the number of ranks");
  return std::make_unique<MpiCommunicator>(rank, size);
}

}  // namespace filigree::mpi

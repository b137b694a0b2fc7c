#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "dist/has_mpi.h"
#include "dist/mpi/mpi_communicator.h"
#include "dist/nccl/nccl_communicator.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/ranks.h"

namespace filigree {
namespace {

class NothingPending : public PendingSum {
 public:
  void wait() override {}
};

class SingleProcess : public Communicator {
 public:
  SingleProcess() : Communicator({.cores = available_cores()}) {}
  bool alone() const override { return true; }
  void sum(std::span<double>) override {}
  std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>>, DeviceKind) override {
    return std::make_unique<NothingPending>();
  }
  void all_gather(const std::vector<std::vector<std::span<float>>>&, DeviceKind) override {}
  void broadcast(std::span<std::byte>) override {}
  bool all_failed(std::chrono::milliseconds) override { return true; }
  void abort(int exit_code) override { std::_Exit(exit_code); }
};

// The largest number that one of these environment variables holds.
int largest_of(std::initializer_list<const char*> names, int least) {
  int most = least;
  for (const char* name : names) {
    const char* text = std::getenv(name);
    int number = 0;
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
    most = std::max(most, number);
  }
  return most;
}

}  // namespace

std::string Communicator::broadcast(std::string text) {
  std::uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)));
  text.resize(length);
  broadcast(std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

bool Communicator::any(bool here) {
  double count = here ? 1.0 : 0.0;
  sum(std::span(&count, 1));
  return count > 0.0;
}

std::unique_ptr<Communicator> make_single_process() { return std::make_unique<SingleProcess>(); }

// As launchers tell their children: Open MPI, MPICH's and Intel's Hydra, Slurm's srun.
int launched_ranks() {
  return largest_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int launched_rank() {
  if (launched_ranks() == 1) return 0;
  return largest_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
}

std::unique_ptr<Communicator> make_communicator(DeviceKind device) {
  const int ranks = launched_ranks();
  if (ranks == 1) return make_single_process();
  if constexpr (kHasMpi) {
    std::unique_ptr<Communicator> all = mpi::make_communicator();
    if (device == DeviceKind::kCpu) return all;
    if constexpr (kHasCuda) use_gpu(all->local_rank());
    if constexpr (kHasNccl) all = nccl::make_communicator(std::move(all));
    return all;
  } else {
    fail(
        "this process was started as one of {}, but this build has no MPI and each would do the "
        "whole work; install libopenmpi-dev and build again, or start one process",
        ranks);
  }
}

}  // namespace filigree

#include "dist/communicator.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "dist/has_mpi.h"
#include "dist/mpi/mpi_communicator.h"

namespace filigree {
namespace {

class NothingPending : public PendingSum {
 public:
  void wait() override {}
};

class SingleProcess : public Communicator {
 public:
  SingleProcess() : Communicator(0, 1) {}
  void sum(std::span<double>) override {}
  std::unique_ptr<PendingSum> start_sum(std::span<float>) override {
    return std::make_unique<NothingPending>();
  }
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void barrier() override {}
};

// Ranks of the job, as launchers tell their children: Open MPI, MPICH's and Intel's Hydra, Slurm's
// srun (which also sets its variable, to 1, in jobs of one).
int launched_ranks() {
  int most = 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(name);
    int count = 0;
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), count);
    most = std::max(most, count);
  }
  return most;
}

}  // namespace

std::unique_ptr<Communicator> make_single_process() { return std::make_unique<SingleProcess>(); }

std::unique_ptr<Communicator> make_communicator() {
  const int ranks = launched_ranks();
  if (ranks == 1) return make_single_process();
  if constexpr (kHasMpi)
    return mpi::make_communicator();
  else
    fail(
        "this process was started as one of {}, but this build has no MPI and each would do the "
        "whole work; install libopenmpi-dev and build again, or start one process",
        ranks);
}

RankPart part_of_rank(std::int64_t count, int rank, int size) {
  require(count >= 0 && size >= 1 && rank >= 0 && rank < size, "rank {} of {} has no part", rank,
          size);
  return {count * rank / size, count * (rank + 1) / size};
}

}  // namespace filigree

// Several processes that work on one job: each has a rank from 0 to size - 1, and all of them make
// the same calls in the same order.
//
//   std::unique_ptr<Communicator> ranks = make_communicator();   // one process, or mpirun's
//   ranks->sum(values);
//
// A job started with `mpirun -n N` gets N ranks where the build has MPI; any other start is a job
// of one, which never touches MPI. Sums are the same bits on every rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/device.h"

namespace filigree {

// A sum under way; its values may be touched again after wait().
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  // Lets sums go on where that takes the processor's help. Cheap; call it now and then.
  virtual void advance() {}
  virtual void wait() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return placement_.rank; }
  int size() const { return placement_.size; }
  bool first() const { return rank() == 0; }
  // Whether there is nobody to speak to, so that sums leave every value as it is.
  virtual bool alone() const { return false; }
  // Among the ranks on the same machine.
  int local_rank() const { return placement_.local_rank; }
  int local_size() const { return placement_.local_size; }
  // Cores for this rank's threads: those that the launcher gave it alone, or else its share of what
  // the ranks of the machine have together.
  int cores() const { return placement_.cores; }
  bool has_own_cores() const { return placement_.own_cores; }

  // Replaces each value by its sum over the ranks. All of these throw Error when the ranks cannot
  // be reached.
  virtual void sum(std::span<double> values) = 0;
  // Begins to, for several arrays at once, and returns: they must stay where they are, on `device`,
  // until wait(). Several may be under way; every rank starts them in the same order with arrays of
  // the same sizes.
  virtual std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>> arrays,
                                                DeviceKind device) = 0;

  // Gives every rank what each of them has of the same arrays: of_ranks[r], which have the same
  // sizes everywhere, hold rank r's values afterwards. They lie on `device`, in the order of its
  // work.
  virtual void all_gather(const std::vector<std::vector<std::span<float>>>& of_ranks,
                          DeviceKind device) = 0;

  // Gives every rank rank 0's bytes.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  // Rank 0's text, whatever its length is.
  std::string broadcast(std::string text);
  // Whether it is so on any of the ranks.
  bool any(bool here);

  // For a rank that has failed: true when all ranks have called this within `patience`, so that
  // each may end by itself. Otherwise the others wait for this one in some other call.
  virtual bool all_failed(std::chrono::milliseconds patience) = 0;
  // Ends the processes of all ranks; does not return.
  virtual void abort(int exit_code) = 0;

 protected:
  struct RankPlacement {
    int rank = 0, size = 1, local_rank = 0, local_size = 1;
    int cores = 1;
    bool own_cores = false;
  };
  explicit Communicator(const RankPlacement& place) : placement_(place) {}

 private:
  RankPlacement placement_;
};

// A job of one.
std::unique_ptr<Communicator> make_single_process();

// Ranks of the job as the launcher tells this process, 1 without one; and which one it is.
int launched_ranks();
int launched_rank();

// The job this process belongs to, with values of start_sum() on `device`. Called once a process,
// before the GPU is used: each rank of a machine takes one of its own. Throws Error when the
// process was started as one of several and this build cannot speak to the others.
std::unique_ptr<Communicator> make_communicator(DeviceKind device = DeviceKind::kCpu);

}  // namespace filigree

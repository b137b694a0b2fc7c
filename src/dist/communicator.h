// Several processes that work on one job: each has a rank from 0 to size - 1, and all of them make
// the same calls in the same order.
//
//   std::unique_ptr<Communicator> all = make_communicator();   // one process, or mpirun's
//   all->sum(gradients);
//
// A job started with `mpirun -n N` gets N ranks where the build has MPI; any other start is a job
// of one. Sums are the same bits on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace filigree {

// A sum under way; its values may be touched again after wait().
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  virtual void wait() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }

  // Replaces each value by its sum over the ranks. All throw Error when the ranks cannot be
  // reached.
  virtual void sum(std::span<double> values) = 0;
  void sum(std::span<float> values) { start_sum(values)->wait(); }
  // Begins to, and returns: `values` must stay where they are until wait(). Several may be under
  // way; every rank starts them in the same order.
  virtual std::unique_ptr<PendingSum> start_sum(std::span<float> values) = 0;

  // Gives every rank rank 0's bytes.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  // Rank 0 receives every rank's text, in order of rank; the others receive nothing.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  // Returns when every rank has called it.
  virtual void barrier() = 0;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

// A job of one.
std::unique_ptr<Communicator> make_single_process();

// The job this process belongs to. Called once a process. Throws Error when it was started as one
// of several and this build cannot speak to the others.
std::unique_ptr<Communicator> make_communicator();

// The part of `count` items that a rank does: [begin, end), parts as even as possible, in order.
struct RankPart {
  std::int64_t begin = 0, end = 0;
};
RankPart part_of_rank(std::int64_t count, int rank, int size);

}  // namespace filigree

// Gradients summed over the ranks of a job while the backward pass still runs.
//
// Each rank has the gradients of its own rows of the batch. As soon as the tape knows that a
// parameter's gradient is final, the parameter joins a bucket; a full bucket's sum starts at once
// and goes on beside the rest of the backward pass. Buckets depend on the tape alone, so they are
// the same on every rank, and so are the bits of the sums.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/ranks.h"

namespace filigree {

class GradientSum {
 public:
  // Large enough that a message's start does not count, small enough that the first ones leave
  // early and little is left to wait for at the end.
  static constexpr std::size_t kBucketBytes = std::size_t{8} << 20;

  explicit GradientSum(Communicator& ranks, std::size_t bucket_bytes = kBucketBytes)
      : ranks_(ranks), bucket_bytes_(bucket_bytes) {}
  // Left early by an exception: sums under way end before their memory goes.
  ~GradientSum() = default;
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // Parameters that each rank has its own of, so that there is nothing to sum.
  void leave_out(const std::vector<NamedParameter>& own);

  // Sums the gradients of the leaves that this tape uses in its backward(). Before anything is
  // recorded. A process alone watches nothing.
  void watch(Tape& tape);

  // After backward(): returns when all gradients are the sums.
  void finish();

 private:
  void add(const Variable& leaf);
  void start_bucket();

  Communicator& ranks_;
  std::size_t bucket_bytes_;
  std::unordered_set<const void*> left_out_;
  std::vector<Variable> bucket_;   // whose sum has not started
  std::size_t filled_ = 0;         // bytes of it
  std::vector<Variable> started_;  // kept, since their memory is being written
  std::vector<std::unique_ptr<PendingSum>> pending_;
};

}  // namespace filigree

// Batches for training and for evaluation from a split of token shards.
//
// Training: every epoch cuts the split into windows of T inputs whose targets are the tokens one
// place on, beginning at an offset that the epoch draws, and gives the windows out in an order that
// the epoch shuffles. Both are functions of (seed, epoch) alone, so the whole state of a loader is
// where it is: an epoch and the number of windows taken from it. Batches run across the end of an
// epoch: no window is dropped, and a split smaller than a batch works too.
//
// Several processes share a batch by rows: rank r takes rows [r B, (r + 1) B) of the world_size * B
// that one process would have taken.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"
#include "text/token_shards.h"

namespace filigree {

struct TokenBatch {
  Tensor ids;      // [B, T] i32
  Tensor targets;  // [B, T] i32, the token after each
};

// Where a loader stands; a checkpoint stores the two numbers.
struct LoaderState {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // windows of the epoch that were taken, by all ranks together

  bool operator==(const LoaderState&) const = default;
};

struct LoaderOptions {
  std::int64_t batch = 1;   // B, rows of this rank
  std::int64_t length = 1;  // T
  std::uint64_t seed = 0;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
};

class ShardLoader {
 public:
  // Continues at `state`. Throws Error when the split has no window of this length, the options
  // make no sense, or the state cannot be one of this split and length.
  ShardLoader(TokenSplit split, LoaderOptions options, LoaderState state = {});

  // The same batch for every thread count.
  TokenBatch next();

  const LoaderState& state() const { return state_; }

  // Windows of an epoch: (tokens - 1 - offset) / T; at most one apart between epochs.
  std::uint64_t windows(std::uint64_t epoch) const;

 private:
  std::uint64_t offset(std::uint64_t epoch) const;

  TokenSplit split_;
  LoaderOptions options_;
  LoaderState state_;
};

// The split from its beginning to its end: every token but the first is a target exactly once.
class SequentialLoader {
 public:
  // Begins with token `first`. Throws Error when there are fewer than two tokens from there on or
  // the sizes are below 1.
  SequentialLoader(TokenSplit split, std::int64_t batch, std::int64_t length,
                   std::int64_t first = 0);

  // False at the end. The last rows may come in a batch of fewer rows, and a rest shorter than T as
  // a batch of one row of its own length.
  bool next(TokenBatch& batch);

  std::uint64_t targets() const { return split_.tokens() - 1 - first_; }
  std::uint64_t targets_done() const { return position_ - first_; }

 private:
  TokenSplit split_;
  std::uint64_t batch_;
  std::uint64_t length_;
  std::uint64_t first_;
  std::uint64_t position_;  // input of the next window's first place
};

}  // namespace filigree

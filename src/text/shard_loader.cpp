#include <algorithm>
#include <utility>
#include <vector>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "text/shard_permutation.h"

namespace filigree {
namespace {

// Streams of the seed that nothing else takes: the purpose in the upper half, the epoch below.
constexpr std::uint64_t kOffsetStream = std::uint64_t{0x0FF5E7} << 40;
constexpr std::uint64_t kOrderStream = std::uint64_t{0x0BDE12} << 40;
constexpr std::uint64_t kMostEpochs = std::uint64_t{1} << 40;

// Inputs and targets of the windows that begin at `starts`, one row each.
TokenBatch read_windows(const TokenSplit& split, const std::vector<std::uint64_t>& starts,
                        std::uint64_t length) {
  const Shape shape{static_cast<std::int64_t>(starts.size()), static_cast<std::int64_t>(length)};
  TokenBatch batch{Tensor::empty(shape, DType::kI32), Tensor::empty(shape, DType::kI32)};
  std::int32_t* ids = batch.ids.mutable_i32();
  std::int32_t* targets = batch.targets.mutable_i32();
  parallel_for(static_cast<std::int64_t>(starts.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<TokenId> window(length + 1);
                 for (auto row = static_cast<std::uint64_t>(begin);
                      row < static_cast<std::uint64_t>(end); ++row) {
                   split.read(starts[row], window);
                   std::copy_n(window.begin(), length, ids + row * length);
                   std::copy_n(window.begin() + 1, length, targets + row * length);
                 }
               });
  return batch;
}

}  // namespace

ShardLoader::ShardLoader(TokenSplit split, LoaderOptions options, LoaderState state)
    : split_(std::move(split)), options_(options), state_(state) {
  require(options_.batch > 0 && options_.length > 0, "loader: batches of {} rows of {} tokens",
          options_.batch, options_.length);
  require(options_.world_size > 0 && options_.rank >= 0 && options_.rank < options_.world_size,
          "loader: rank {} of {} processes", options_.rank, options_.world_size);
  require(split_.tokens() > static_cast<std::uint64_t>(options_.length),
          "loader: split '{}' has {} tokens; a window of {} and its last target take {}",
          printable(split_.name()), split_.tokens(), options_.length, options_.length + 1);
  require(state_.epoch < kMostEpochs && state_.position <= windows(state_.epoch),
          "loader: cannot continue at window {} of epoch {}, which has {}; the data or the length "
          "was another",
          state_.position, state_.epoch, state_.epoch < kMostEpochs ? windows(state_.epoch) : 0);
}

std::uint64_t ShardLoader::offset(std::uint64_t epoch) const {
  const auto length = static_cast<std::uint64_t>(options_.length);
  return Random(options_.seed, kOffsetStream | epoch)
      .below(std::min(length, split_.tokens() - length));
}

std::uint64_t ShardLoader::windows(std::uint64_t epoch) const {
  return (split_.tokens() - 1 - offset(epoch)) / static_cast<std::uint64_t>(options_.length);
}

TokenBatch ShardLoader::next() {
  const auto rows = static_cast<std::uint64_t>(options_.batch);
  const auto length = static_cast<std::uint64_t>(options_.length);
  const std::uint64_t first_own = static_cast<std::uint64_t>(options_.rank) * rows;
  std::uint64_t left = rows * static_cast<std::uint64_t>(options_.world_size);
  std::uint64_t row = 0;  // of the global batch
  std::vector<std::uint64_t> starts;
  while (left > 0) {
    const IndexPermutation order(windows(state_.epoch), options_.seed, kOrderStream | state_.epoch);
    const std::uint64_t count = std::min(left, order.size() - state_.position);
    const std::uint64_t begin = std::clamp(first_own, row, row + count);
    const std::uint64_t end = std::clamp(first_own + rows, row, row + count);
    for (std::uint64_t i = begin; i < end; ++i)
      starts.push_back(offset(state_.epoch) + order(state_.position + i - row) * length);
    row += count;
    left -= count;
    state_.position += count;
    if (state_.position == order.size()) state_ = {state_.epoch + 1, 0};
  }
  return read_windows(split_, starts, length);
}

SequentialLoader::SequentialLoader(TokenSplit split, std::int64_t batch, std::int64_t length,
                                   std::int64_t first)
    : split_(std::move(split)),
      batch_(static_cast<std::uint64_t>(batch)),
      length_(static_cast<std::uint64_t>(length)),
      first_(static_cast<std::uint64_t>(first)),
      position_(first_) {
  require(batch > 0 && length > 0, "loader: batches of {} rows of {} tokens", batch, length);
  require(split_.tokens() >= 2, "loader: split '{}' has {} tokens; at least 2 are needed",
          printable(split_.name()), split_.tokens());
  require(first >= 0 && first_ <= split_.tokens() - 2,
          "loader: split '{}' has {} tokens; it cannot be read from token {} on",
          printable(split_.name()), split_.tokens(), first);
}

bool SequentialLoader::next(TokenBatch& batch) {
  const std::uint64_t left = targets() - targets_done();
  if (left == 0) return false;
  const std::uint64_t length = std::min(left, length_);
  std::vector<std::uint64_t> starts;
  for (; starts.size() < batch_ && targets() - targets_done() >= length; position_ += length)
    starts.push_back(position_);
  batch = read_windows(split_, starts, length);
  return true;
}

}  // namespace filigree

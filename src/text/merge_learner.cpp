#include "text/merge_learner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>

#include "filigree/error.h"
#include "text/byte_level.h"
#include "text/pair_table.h"

namespace filigree {
namespace {

constexpr std::size_t kTokensBetweenReports = 64;

using Position = std::uint32_t;

// What is known of one pair of neighbouring tokens.
struct PairRecord {
  TokenId left = 0;
  TokenId right = 0;
  std::uint64_t count = 0;
  // Where the left token of an occurrence begins. Occurrences that have gone since are still
  // listed; they are recognised when the pair is joined.
  std::vector<Position> positions{};
};

// An entry of the queue. After it was put there its pair can only have become rarer; that is
// noticed when it comes up.
struct Candidate {
  std::uint64_t count;
  TokenId left;
  TokenId right;
  std::uint32_t record;

  bool operator<(const Candidate& other) const {
    return std::tuple(count, other.left, other.right) < std::tuple(other.count, left, right);
  }
};

// Why each token is made by one rule, in one join, and a pair's count rises in no other join than
// the one that makes the younger of its two tokens: let a byte string S occur at two places such
// that at both no token crosses its ends. Then the tokens inside S are the same at both. They are
// at first, when tokens are bytes. A join works from left to right; it could treat the two places
// differently only by joining a token inside S with one outside, which would cross an end of S. So
// when S becomes a token at one place, at every place where it ever does it consists of the same
// pair at that time, and the same join makes it.
class MergeLearner {
 public:
  MergeLearner(const WordCounts& words, const MergeLearnerOptions& options);

  LearnedMerges learn(const MergeProgress& progress);

 private:
  // slots_ holds all words, a kBorder before and after each. A token of n bytes takes n slots: the
  // first has its id; the last, when n > 1, holds -n, so that one can also step to the left; what
  // is in between is negative.
  static constexpr TokenId kBorder = std::numeric_limits<TokenId>::max();

  const std::string& bytes_of(TokenId id) const {
    return learned_.tokens[static_cast<std::size_t>(id - options_.first_byte_id)];
  }
  TokenId token_before(Position at, Position& begin) const {
    const TokenId last = slots_[at - 1];
    begin = last >= 0 ? at - 1 : static_cast<Position>(std::int64_t{at} + last);
    return slots_[begin];
  }

  PairRecord& record(TokenId left, TokenId right, std::uint32_t& index);
  void lose(TokenId left, TokenId right, std::uint64_t times);
  void gain(TokenId left, TokenId right, std::uint64_t times, Position at);
  void enqueue(std::uint32_t index);
  void enqueue_new_pairs();
  // Makes the joined token; gives a negative id when it must not be made.
  TokenId make_token(const PairRecord& pair);
  void join_everywhere(std::uint32_t index, TokenId joined);

  const MergeLearnerOptions& options_;
  const WordCounts& words_;
  std::vector<TokenId> slots_;
  std::vector<std::uint32_t> word_of_slot_;
  PairTable pairs_;  // -> index in records_
  std::vector<PairRecord> records_;
  std::priority_queue<Candidate> queue_;
  std::vector<std::uint32_t> new_pairs_;  // records made by the current join
  LearnedMerges learned_;
};

MergeLearner::MergeLearner(const WordCounts& words, const MergeLearnerOptions& options)
    : options_(options), words_(words) {
  std::array<TokenId, 256> id_of_byte{};
  for (const std::uint8_t byte : bytes_in_alphabet_order()) {
    id_of_byte[byte] = options.first_byte_id + static_cast<TokenId>(learned_.tokens.size());
    learned_.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::size_t slots = 1;
  for (std::size_t i = 0; i < words.size(); ++i) slots += words.word(i).size() + 1;
  if (slots > std::numeric_limits<Position>::max())
    fail("BPE training: {} bytes of distinct words; at most {} are supported", slots,
         std::numeric_limits<Position>::max());
  slots_.reserve(slots);
  word_of_slot_.reserve(slots);
  slots_.push_back(kBorder);
  word_of_slot_.push_back(0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const char byte : words.word(i)) {
      slots_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
      const std::size_t at = slots_.size() - 1;
      if (slots_[at - 1] != kBorder)
        gain(slots_[at - 1], slots_[at], words.count(i), static_cast<Position>(at - 1));
    }
    slots_.push_back(kBorder);
    word_of_slot_.resize(slots_.size(), static_cast<std::uint32_t>(i));
  }
  enqueue_new_pairs();
}

PairRecord& MergeLearner::record(TokenId left, TokenId right, std::uint32_t& index) {
  const std::uint64_t found = pairs_.insert(static_cast<std::uint32_t>(left),
                                            static_cast<std::uint32_t>(right), records_.size());
  if (found == records_.size()) records_.push_back({.left = left, .right = right});
  index = static_cast<std::uint32_t>(found);
  return records_[found];
}

void MergeLearner::lose(TokenId left, TokenId right, std::uint64_t times) {
  std::uint32_t index = 0;
  record(left, right, index).count -= times;
}

void MergeLearner::gain(TokenId left, TokenId right, std::uint64_t times, Position at) {
  std::uint32_t index = 0;
  PairRecord& pair = record(left, right, index);
  pair.count += times;
  pair.positions.push_back(at);
  if (pair.positions.size() == 1) new_pairs_.push_back(index);
}

void MergeLearner::enqueue(std::uint32_t index) {
  const PairRecord& pair = records_[index];
  if (pair.count >= std::max<std::uint64_t>(options_.min_frequency, 1))
    queue_.push({pair.count, pair.left, pair.right, index});
}

void MergeLearner::enqueue_new_pairs() {
  for (const std::uint32_t index : new_pairs_) enqueue(index);
  new_pairs_.clear();
}

TokenId MergeLearner::make_token(const PairRecord& pair) {
  std::string bytes = bytes_of(pair.left) + bytes_of(pair.right);
  const auto& forbidden = options_.forbidden;
  const auto digits = static_cast<std::size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char byte) { return byte >= '0' && byte <= '9'; }));
  if (bytes.size() > options_.max_token_bytes ||
      (options_.max_digits > 0 && digits > options_.max_digits) ||
      std::find(forbidden.begin(), forbidden.end(), bytes) != forbidden.end())
    return -1;
  learned_.tokens.push_back(std::move(bytes));
  return options_.first_byte_id + static_cast<TokenId>(learned_.tokens.size() - 1);
}

void MergeLearner::join_everywhere(std::uint32_t index, TokenId joined) {
  const TokenId left = records_[index].left;
  const TokenId right = records_[index].right;
  const std::size_t left_length = bytes_of(left).size();
  const std::size_t joined_length = bytes_of(joined).size();
  // All in one join were listed from left to right, and so they are joined, as encoding does: of
  // "aaa" the first two.
  const std::vector<Position> positions = std::move(records_[index].positions);
  for (const Position at : positions) {
    if (slots_[at] != left || slots_[at + left_length] != right) continue;
    const std::uint64_t times = words_.count(word_of_slot_[at]);
    Position before_begin = 0;
    const TokenId before = token_before(at, before_begin);
    const TokenId after = slots_[at + joined_length];
    if (before != kBorder) {
      lose(before, left, times);
      gain(before, joined, times, before_begin);
    }
    if (after != kBorder) {
      lose(right, after, times);
      gain(joined, after, times, at);
    }
    slots_[at] = joined;
    slots_[at + left_length] = -1;
    slots_[at + joined_length - 1] = -static_cast<TokenId>(joined_length);
  }
  // Every occurrence is gone; what lose() took off for overlapping ones must not count.
  records_[index].count = 0;
  enqueue_new_pairs();
}

LearnedMerges MergeLearner::learn(const MergeProgress& progress) {
  const auto special_tokens = static_cast<std::size_t>(options_.first_byte_id);
  std::size_t reported = 0;
  while (special_tokens + learned_.tokens.size() < options_.vocab_size && !queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const PairRecord& pair = records_[best.record];
    if (best.count != pair.count) {
      enqueue(best.record);
      continue;
    }
    const TokenId joined = make_token(pair);
    if (joined < 0) continue;
    learned_.rules.emplace_back(pair.left, pair.right);
    join_everywhere(best.record, joined);
    const std::size_t tokens = special_tokens + learned_.tokens.size();
    if (progress && tokens >= reported + kTokensBetweenReports) {
      progress(tokens);
      reported = tokens;
    }
  }
  return std::move(learned_);
}

}  // namespace

LearnedMerges learn_merges(const WordCounts& words, const MergeLearnerOptions& options,
                           const MergeProgress& progress) {
  return MergeLearner(words, options).learn(progress);
}

}  // namespace filigree

// Learns the merge rules of BPE from counted words: again and again joins the pair of neighbouring
// tokens that occurs most often, until the vocabulary is full or no pair is frequent enough.
//
// Of pairs that occur equally often, the one with the smaller ids wins (first the left id, then the
// right one), so the result depends only on the counts, not on the order of the words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "filigree/tokenizer.h"
#include "text/word_counts.h"

namespace filigree {

struct MergeLearnerOptions {
  // Number of tokens to stop at, the ones that exist from the start included.
  std::size_t vocab_size = 0;
  // The 256 bytes have the ids first_byte_id, first_byte_id + 1, ... in the order of the byte-level
  // alphabet. Smaller ids belong to special tokens.
  TokenId first_byte_id = 0;
  // Pairs that occur less often are not joined.
  std::uint64_t min_frequency = 1;
  // Longer tokens are not made.
  std::size_t max_token_bytes = 1024;
  // Tokens with more decimal digits are not made; 0: any number. With 2, a year is two tokens.
  std::size_t max_digits = 0;
  // Byte strings that must not become a token.
  std::vector<std::string> forbidden{};
};

struct LearnedMerges {
  std::vector<std::pair<TokenId, TokenId>> rules;  // by rank
  // The bytes of the tokens from first_byte_id on. Shorter than asked for when pairs ran out.
  std::vector<std::string> tokens;
};

// Called with the number of tokens so far; may be empty.
using MergeProgress = std::function<void(std::size_t tokens)>;

LearnedMerges learn_merges(const WordCounts& words, const MergeLearnerOptions& options,
                           const MergeProgress& progress);

}  // namespace filigree

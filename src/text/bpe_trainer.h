// Trains a byte-level BPE tokenizer, by the algorithm of Hugging Face's BpeTrainer with ByteLevel:
// ids are given to the special tokens, then to all 256 bytes in the order of the byte-level
// alphabet, then to the joined tokens as they are learned; the most frequent pair is joined first,
// among equals the one with the smaller ids.
//
// It differs in two ways, which do not show on ordinary text without special tokens:
//   - the names of special tokens in the text separate texts and are not learned from: encoding
//     never sees them as text;
//   - tokens longer than 1024 bytes are not made.
//
// The result depends on the texts and options alone, not on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/tokenizer.h"
#include "text/added_tokens.h"
#include "text/word_counts.h"

namespace filigree {

struct BpeTrainingProgress {
  enum class Stage { kCountingWords, kMerging };
  Stage stage;
  std::size_t done;  // bytes of the current text; tokens of the vocabulary
  std::size_t total;
};

struct BpeTrainingOptions {
  std::size_t vocab_size = 8192;
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  // Pairs that occur less often are not joined; the vocabulary may then stay smaller.
  std::uint64_t min_frequency = 2;
  // Tokens with more decimal digits are not made; 0: any number.
  std::size_t max_digits = 0;
  // Called from any thread, never from two at once.
  std::function<void(const BpeTrainingProgress&)> progress{};
};

class BpeTrainer {
 public:
  // Throws Error when vocab_size cannot hold the special tokens and the 256 bytes, and for special
  // tokens that are empty, given twice or look like a byte of the byte-level alphabet.
  explicit BpeTrainer(BpeTrainingOptions options);

  // Counts the words of one text on all threads; no word reaches from one text into the next.
  // Throws Error naming the byte offset of invalid UTF-8. `name` is what that message calls the
  // text.
  void add_text(std::string_view text, std::string_view name = "text");

  // The same for a file, which is mapped, not read into memory.
  void add_file(const std::filesystem::path& file);

  // The tokenizer for everything added so far.
  Tokenizer train() const;

 private:
  BpeTrainingOptions options_;
  AddedTokens special_tokens_;
  // One table for each worker, so that they never wait for each other; their sum is what counts.
  std::vector<WordCounts> counts_;
};

}  // namespace filigree

// Tokens that are recognised in text as they stand, before anything is pre-tokenized: the special
// ones (<|endoftext|>) and others that were added to a vocabulary.
//
// Where several match, the leftmost wins, then the longest. As in Hugging Face's tokenizers, tokens
// that match raw text ("normalized": false) go first, the others search what those leave over.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/tokenizer.h"
#include "text/normalizer.h"
#include "text/pair_table.h"

namespace filigree {

// Matching looks this far ahead at every byte of a text; longer contents are refused.
inline constexpr std::size_t kMaxAddedTokenBytes = 1024;

struct AddedToken {
  std::string content;  // literal text, not in the byte-level alphabet
  TokenId id = 0;
  bool special = true;
  bool normalized = false;
  bool strip_left = false;   // the token swallows white space before it
  bool strip_right = false;  // and after it
};

// A stretch of text between added tokens, or one added token.
struct TextSegment {
  static constexpr TokenId kText = -1;
  std::string_view text;
  TokenId id = kText;
  bool first = false;  // begins where the whole text does
};

// Finds one set of strings at once by a trie.
class LiteralMatcher {
 public:
  void add(std::string_view content, std::uint32_t value);
  bool empty() const { return node_count_ == 1; }

  struct Match {
    std::size_t begin = 0;
    std::size_t length = 0;
    std::uint32_t value = 0;
  };
  // The leftmost-longest match at or after `from`; false when there is none.
  bool find(std::string_view text, std::size_t from, Match& match) const;

 private:
  static constexpr std::uint32_t kNoValue = UINT32_MAX;

  PairTable children_;  // (node, byte) -> node
  std::vector<std::uint32_t> values_{kNoValue};
  std::uint32_t node_count_ = 1;
  std::array<bool, 256> begins_{};  // bytes some string begins with
};

class AddedTokens {
 public:
  AddedTokens() = default;

  // Throws Error for an empty or overlong content and for one that occurs twice. Tokens that match
  // normalized text are looked for as `steps` leave their contents.
  explicit AddedTokens(std::vector<AddedToken> tokens, std::vector<NormalizerStep> steps = {});

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const std::vector<NormalizerStep>& normalizer() const { return steps_; }

  // Cuts `text`, and normalizes what lies between tokens that match it raw; the segments point into
  // `text` or, where it is normalized, into `storage`. Without `recognise_special`, the contents of
  // special tokens are ordinary text. No segment of text is empty.
  std::vector<TextSegment> split(std::string_view text, bool recognise_special,
                                 std::deque<std::string>& storage) const;

 private:
  void split_by(const LiteralMatcher& matcher, std::string_view text, bool recognise_special,
                std::vector<TextSegment>& segments) const;

  std::vector<AddedToken> tokens_;
  std::vector<NormalizerStep> steps_;
  LiteralMatcher raw_;
  LiteralMatcher normalized_;
};

}  // namespace filigree

// Byte-pair encoding of one word: starts from the tokens of its bytes and applies, as long as any
// rule applies, the one of lowest rank, leftmost first. Immutable, so any number of threads may
// encode with one model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filigree/tokenizer.h"
#include "text/pair_table.h"
#include "text/vocabulary.h"

namespace filigree {

// "left and right become the token left + right"; the rank is the place in the list of rules.
struct MergeRule {
  std::string left;
  std::string right;
  std::size_t place = 0;  // line or number that error messages name
};

struct BpeSettings {
  // Takes the place of bytes that have no token of their own.
  std::optional<std::string> unknown_token{};
  // One unknown token for a run of such bytes instead of one each.
  bool fuse_unknown = false;
  // A word that is in the vocabulary becomes that token whatever the rules say.
  bool ignore_merges = false;
  // Words begin as their characters, written in the vocabulary as they are, instead of their bytes.
  bool characters = false;
  // A character without a token becomes its bytes, as tokens "<0x0A>", where all of them exist.
  bool byte_fallback = false;
};

class BpeModel {
 public:
  // `rules_name` begins messages about a rule: "merges.txt: line" gives "merges.txt: line 12: ...".
  // Throws Error for a rule that names a token outside the vocabulary. Of equal rules the last
  // counts, as in Hugging Face's tokenizers.
  BpeModel(Vocabulary vocabulary, const std::vector<MergeRule>& rules, std::string_view rules_name,
           BpeSettings settings);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const BpeSettings& settings() const { return settings_; }

  // The rules by rank, as pairs of ids.
  const std::vector<std::pair<TokenId, TokenId>>& rules() const { return rules_; }

  // Appends the tokens of `word` (bytes, not in the byte-level alphabet) in O(n log n). Throws
  // Error for a byte or character without a token when there is no unknown token.
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const;

 private:
  static constexpr std::uint64_t kNoMerge = UINT64_MAX;

  // Rank in the upper half, resulting token in the lower: the smaller value is the earlier rule.
  std::uint64_t merge_of(TokenId left, TokenId right) const {
    const std::uint64_t* merge =
        merges_.find(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
    return merge == nullptr ? kNoMerge : *merge;
  }

  void append_byte_tokens(std::string_view word, std::vector<TokenId>& ids) const;
  void append_characters(std::string_view word, std::vector<TokenId>& ids) const;
  void merge_few(std::vector<TokenId>& ids, std::size_t begin) const;
  void merge_many(std::vector<TokenId>& ids, std::size_t begin) const;

  Vocabulary vocabulary_;
  BpeSettings settings_;
  std::vector<std::pair<TokenId, TokenId>> rules_;
  PairTable merges_;
  std::array<TokenId, 256> byte_tokens_{};  // kNoToken: none
  static constexpr TokenId kNoToken = -1;
  TokenId unknown_ = kNoToken;
};

}  // namespace filigree

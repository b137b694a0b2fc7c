// The tokens of a BPE model and their ids, both ways.
//
// Ids need not be contiguous: Hugging Face accepts vocabularies with unused ids, so does this. But
// an id must be below 2 x entries + 65536, so that a table by id stays in proportion to the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/tokenizer.h"
#include "text/word_table.h"

namespace filigree {

inline constexpr std::size_t kMaxTokenBytes = std::size_t{64} << 10;

struct VocabularyEntry {
  std::string token;  // in the byte-level alphabet
  TokenId id = 0;
};

class Vocabulary {
 public:
  // Throws Error, with `name` in front, for no entries, a token that is empty, overlong or not
  // UTF-8, a token or an id that occurs twice, and an id that is negative or too large.
  Vocabulary(const std::vector<VocabularyEntry>& entries, std::string_view name);

  // Largest id + 1.
  std::size_t id_limit() const { return index_of_id_.size(); }
  std::size_t entry_count() const { return words_.size(); }

  std::optional<TokenId> find(std::string_view token) const;

  // Nothing for an id that is unused or out of range.
  std::optional<std::string_view> token(TokenId id) const;

  // The largest id + 1 that a vocabulary of this many entries may have.
  static std::size_t largest_id_limit(std::size_t entries) { return 2 * entries + 65536; }

 private:
  WordTable words_;
  std::vector<TokenId> id_of_index_;
  std::vector<std::uint32_t> index_of_id_;  // WordTable::kAbsent: unused
};

}  // namespace filigree

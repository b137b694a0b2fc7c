#include "text/vocabulary.h"

#include <algorithm>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

Vocabulary::Vocabulary(const std::vector<VocabularyEntry>& entries, std::string_view name) {
  if (entries.empty()) fail("{}: the vocabulary is empty", name);
  const std::size_t limit = largest_id_limit(entries.size());
  std::size_t largest = 0;
  for (const VocabularyEntry& entry : entries) {
    if (entry.id < 0 || static_cast<std::size_t>(entry.id) >= limit)
      fail("{}: token '{}' has id {}; with {} tokens an id must be between 0 and {}", name,
           printable(entry.token), entry.id, entries.size(), limit - 1);
    largest = std::max(largest, static_cast<std::size_t>(entry.id));
  }
  index_of_id_.assign(largest + 1, WordTable::kAbsent);
  id_of_index_.reserve(entries.size());
  for (const VocabularyEntry& entry : entries) {
    if (entry.token.empty()) fail("{}: the token with id {} is empty", name, entry.id);
    if (entry.token.size() > kMaxTokenBytes)
      fail("{}: the token with id {} is {} bytes long; at most {} are supported", name, entry.id,
           entry.token.size(), kMaxTokenBytes);
    if (!is_valid_utf8(entry.token))
      fail("{}: token '{}' is not valid UTF-8", name, printable(entry.token));
    const std::uint32_t index = words_.intern(entry.token);
    if (index != id_of_index_.size())
      fail("{}: token '{}' occurs twice", name, printable(entry.token));
    id_of_index_.push_back(entry.id);
    std::uint32_t& slot = index_of_id_[static_cast<std::size_t>(entry.id)];
    if (slot != WordTable::kAbsent)
      fail("{}: tokens '{}' and '{}' have the same id {}", name, printable(words_[slot]),
           printable(entry.token), entry.id);
    slot = index;
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const std::uint32_t index = words_.find(token);
  if (index == WordTable::kAbsent) return std::nullopt;
  return id_of_index_[index];
}

std::optional<std::string_view> Vocabulary::token(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= index_of_id_.size()) return std::nullopt;
  const std::uint32_t index = index_of_id_[static_cast<std::size_t>(id)];
  if (index == WordTable::kAbsent) return std::nullopt;
  return words_[index];
}

}  // namespace filigree

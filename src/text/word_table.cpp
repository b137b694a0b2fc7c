#include "text/word_table.h"

#include "filigree/error.h"
#include "text/hashing.h"

namespace filigree {
namespace {

constexpr std::size_t kFirstSlots = 64;

std::uint32_t part(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

}  // namespace

WordTable::WordTable() : key_(hash_key()), slots_(kFirstSlots) {}

std::size_t WordTable::slot_of(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.index == kAbsent) return at;
    if (slot.hash_part == part(hash) && (*this)[slot.index] == word) return at;
  }
}

std::uint32_t WordTable::find(std::string_view word) const {
  return slots_[slot_of(word, hash_bytes(word, key_))].index;
}

std::uint32_t WordTable::intern(std::string_view word) {
  const std::uint64_t hash = hash_bytes(word, key_);
  std::size_t at = slot_of(word, hash);
  if (slots_[at].index != kAbsent) return slots_[at].index;
  if (ends_.size() >= kAbsent) fail("word table: more than {} distinct words", ends_.size());
  if ((ends_.size() + 1) * 2 > slots_.size()) {
    grow();
    at = slot_of(word, hash);
  }
  const auto index = static_cast<std::uint32_t>(ends_.size());
  bytes_ += word;
  ends_.push_back(bytes_.size());
  slots_[at] = {index, part(hash)};
  return index;
}

void WordTable::grow() {
  std::vector<Slot> larger(slots_.size() * 2);
  const std::size_t mask = larger.size() - 1;
  for (std::uint32_t index = 0; index < ends_.size(); ++index) {
    const std::uint64_t hash = hash_bytes((*this)[index], key_);
    std::size_t at = hash & mask;
    while (larger[at].index != kAbsent) at = (at + 1) & mask;
    larger[at] = {index, part(hash)};
  }
  slots_ = std::move(larger);
}

}  // namespace filigree
